"""Asking models: which one is chosen, what it gets, and the errors when it does not answer."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from fake_ai import MODELS, FakeAI, Reply, picture, script
from worlds import PATIENCE_S

from peekaboo_min.ai import client
from peekaboo_min.ai.client import (
    ModelChoice,
    analyze_file,
    ask_model,
    choose_model,
    choose_provider,
    parse_providers,
    provider_status,
)
from peekaboo_min.ai.images import fitted_size
from peekaboo_min.core.cancellation import CancelToken, use_cancel_token
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.log import collected_debug_lines
from peekaboo_min.core.models import ImageData, ImageInfo, RecognisedText, Rect
from peekaboo_min.core.settings import forget_environment, settings
from peekaboo_min.desktop.x11.backend import X11Desktop
from peekaboo_min.system.images import sniff_image

VENDORS = {
    "ollama": "qwen3-vl:8b",
    "openai": "gpt-5.4-mini",
    "gemini": "gemini-3.6-flash",
    "anthropic": "claude-sonnet-5",
}
CLOUD = ("openai", "gemini", "anthropic")
KEYS = {"openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
EVERY = pytest.mark.parametrize("vendor", VENDORS)
EVERY_CLOUD = pytest.mark.parametrize("vendor", CLOUD)
SCHEMA = {
    "type": "object",
    "properties": {
        "x": {"type": ["integer", "null"]},
        "minimum": {"type": "number"},
        "keys": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["x", "minimum", "keys"],
    "additionalProperties": False,
}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before another try: noted, and not slept."""
    noted: list[float] = []
    monkeypatch.setattr(client, "pause", noted.append)
    return noted


class TestDesktop(X11Desktop):
    """Scales with the real program, which needs no display; reads the text it was given."""

    __test__ = False

    def __init__(self, lines: tuple[str, ...] = ()) -> None:
        self.lines = lines

    def read_text(self, path: Path) -> list[RecognisedText]:
        assert sniff_image(path.read_bytes()) and path.stat().st_mode & 0o777 == 0o600
        return [RecognisedText(line, Rect(0, 0, 1, 1), 1.0) for line in self.lines]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Sets environment variables, as if the process had started with them; all of ours are unset before."""

    def start(variables: Optional[dict[str, str]] = None, **more: str) -> None:
        for name, value in {**(variables or {}), **more}.items():
            monkeypatch.setenv(name, value)
        forget_environment()

    for name in list(os.environ):
        if name.startswith("PEEKABOO_") or name.endswith(("_API_KEY", "_BASE_URL", "_proxy", "_PROXY")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    start(HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path / "state"))
    yield start
    forget_environment()


@pytest.fixture
def ask(ai: FakeAI, use: Callable[..., None]) -> Callable[..., Any]:
    """Asks a vendor of the fake about one small image."""

    def ask_vendor(vendor: str, model: str = "", images: Optional[list[Any]] = None, **more: Any) -> Any:
        use(ai.env(vendor, model or VENDORS[vendor]))
        images = [an_image()] if images is None else images
        return ask_model(TestDesktop(), images, "What?", choice=choose_model(vendor, model), **more)

    return ask_vendor


def an_image(kind: str = "png", width: int = 64, height: int = 64) -> ImageData:
    data = picture(kind.replace("jpg", "jpeg"), width, height)
    return ImageData(data, ImageInfo(kind, width, height))


def failing(call: Callable[..., Any], *args: Any, **more: Any) -> PeekabooError:
    with pytest.raises(PeekabooError) as caught:
        call(*args, **more)
    return caught.value


def save(folder: Path, name: str, data: bytes) -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


# which provider


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", []),
        (" , ;", []),
        ("ollama/llava:7b", [("ollama", "llava:7b")]),
        ("openai/gpt-4o, ollama/qwen2.5vl:7b", [("openai", "gpt-4o"), ("ollama", "qwen2.5vl:7b")]),
        ("gemini/a;anthropic/b", [("gemini", "a"), ("anthropic", "b")]),
        ("ollama/hf.co/someone/vision:q4", [("ollama", "hf.co/someone/vision:q4")]),
        ("ollama,openai,gemini,anthropic", list(VENDORS.items())),
        ("openai/", [("openai", "gpt-5.4-mini")]),
        ("OpenAI / gpt-4o ", [("openai", "gpt-4o")]),
        ("ocr", [("ocr", "local")]),
        ("grok/4,ollama", [("grok", "4"), ("ollama", "qwen3-vl:8b")]),
    ],
)
def test_the_configured_providers_are_read(text: str, expected: list[tuple[str, str]]) -> None:
    assert parse_providers(text) == [ModelChoice(*each) for each in expected]


@pytest.mark.parametrize("providers", ["", ",;"])
def test_without_configuration_analysis_is_not_configured(use: Callable[..., None], providers: str) -> None:
    use(PEEKABOO_AI_PROVIDERS=providers)
    wrong = failing(choose_provider)
    assert (wrong.code, wrong.message) == (
        ErrorCode.AI_NOT_CONFIGURED,
        "AI analysis not configured on this server. Set the PEEKABOO_AI_PROVIDERS environment variable.",
    )


def test_an_explicit_provider_is_not_probed_and_has_its_configured_model(use: Callable[..., None]) -> None:
    use(PEEKABOO_AI_PROVIDERS="ollama/llava:7b,openai/gpt-4o")
    assert choose_provider("openai") == ModelChoice("openai", "gpt-4o")
    assert choose_provider("OpenAI", "gpt-5.5") == ModelChoice("openai", "gpt-5.5")
    message = "Provider 'gemini' is not enabled in server's PEEKABOO_AI_PROVIDERS configuration."
    assert failing(choose_provider, "gemini").message == message


def test_an_unknown_provider_is_reported_when_it_is_used(use: Callable[..., None]) -> None:
    use(PEEKABOO_AI_PROVIDERS="grok/4")
    wrong = failing(choose_provider, "grok")
    assert wrong.code is ErrorCode.INVALID_ARGUMENT
    assert wrong.message == "there is no provider 'grok'; there are ollama, openai, gemini, anthropic, ocr"
    assert failing(choose_provider).message == wrong.message


def test_auto_takes_the_first_that_is_operational(ai: FakeAI, use: Callable[..., None]) -> None:
    use(ai.env("gemini", "x"), PEEKABOO_AI_PROVIDERS="openai/a,ollama/b,gemini/g,grok/4,ocr")
    use(OPENAI_BASE_URL="https://api.openai.com/v1")  # without a key
    use(PEEKABOO_OLLAMA_BASE_URL=f"http://127.0.0.1:{ai.refused_port()}")
    assert choose_provider() == choose_provider("auto") == ModelChoice("gemini", "g")
    assert choose_provider("auto", "asked") == ModelChoice("gemini", "asked")


@pytest.mark.parametrize("model", ["qwen3-vl:8b", "LLaVA", "llava:latest", "hf.co/someone/vision:q4"])
def test_ollama_is_operational_with_a_model_that_it_has(
    ai: FakeAI, use: Callable[..., None], model: str
) -> None:
    use(ai.env("ollama", model))
    assert choose_provider() == ModelChoice("ollama", model)


@pytest.mark.parametrize(
    ("providers", "model", "problem"),
    [
        ("ollama/qwen3-vl", None, "run: ollama pull qwen3-vl,"),
        ("ollama/qwen", None, "run: ollama pull qwen,"),
        ("ollama/llava:7b,openai/gpt-4o", None, "Ollama has no model llava:7b: "),
        ("ollama/llama3.2:3b,openai/gpt-4o", None, "its model llama3.2:3b takes no images"),
        ("gemini/g,ollama/llava,openai/gpt-4o", "lava", "run: ollama pull lava,"),
        ("gemini/g,olama/llava,openai/gpt-4o", None, "there is no provider 'olama'"),
    ],
)
def test_auto_sends_nothing_to_the_next_one_where_a_model_is_missing_or_mistyped(
    ai: FakeAI, use: Callable[..., None], tmp_path: Path, providers: str, model: Optional[str], problem: str
) -> None:
    """ "Ollama (if using local Ollama for analysis) + instructions to pull models." """
    use({**ai.env("openai", "x"), **ai.env("ollama", "x"), "PEEKABOO_AI_PROVIDERS": providers})
    wrong = failing(analyze_file, TestDesktop(), save(tmp_path, "shot.png", picture()), "?", model=model)
    assert problem in wrong.message
    assert [each for each in ai.requests if each.vendor != "ollama"] == ai.questions == []


def test_auto_asks_no_other_where_ollama_answers_with_an_error(ai: FakeAI, use: Callable[..., None]) -> None:
    use({**ai.env("openai", "x"), "PEEKABOO_AI_PROVIDERS": "ollama/llava,openai/gpt-5.5"})
    ai.fail_with("server_error", status=500, text="out of memory", path="/api/show")
    assert "server error (500): out of memory" in failing(choose_provider).message


def test_ollama_that_does_not_run_is_not_operational(ai: FakeAI, use: Callable[..., None]) -> None:
    host = f"127.0.0.1:{ai.refused_port()}"
    use(PEEKABOO_AI_PROVIDERS="ollama;openai", PEEKABOO_OLLAMA_BASE_URL=f"http://{host}/")
    problems = failing(choose_provider).hint
    assert f"ollama: Ollama gave no answer: connection refused by {host}; start it" in problems
    assert "openai: OPENAI_API_KEY is not set" in problems


def test_the_status_covers_every_provider_and_asks_no_cloud(ai: FakeAI, use: Callable[..., None]) -> None:
    """ "If `item_type === "server_status"`: Handler directly calls generateServerStatusString()" """
    use({**ai.env("openai", "x"), **ai.env("gemini", "x")})
    use(
        PEEKABOO_AI_PROVIDERS="ollama/llava,openai/gpt-5.5,openai/gpt-1,gemini,anthropic,ocr,grok/4",
        GEMINI_API_KEY="wrong",
    )
    statuses = [(each.choice.name, each.problem) for each in provider_status()]
    assert statuses == [
        ("ollama/llava", ""),
        ("openai/gpt-5.5", ""),
        ("openai/gpt-1", ""),
        ("gemini/gemini-3.6-flash", ""),
        ("anthropic/claude-sonnet-5", "ANTHROPIC_API_KEY is not set"),
        ("ocr/local", ""),
        ("grok/4", "there is no provider 'grok'; there are ollama, openai, gemini, anthropic, ocr"),
    ]
    assert [each for each in ai.requests if each.vendor != "ollama"] == []


# what a model gets


@EVERY
def test_a_model_answers_a_question_about_an_image(ai: FakeAI, ask: Callable[..., Any], vendor: str) -> None:
    answer = ask(vendor, system="Look.")
    assert (answer.text, answer.model_used) == ("I see a 64x64 image/png", f"{vendor}/{VENDORS[vendor]}")
    assert (answer.tokens_in, answer.tokens_out) == (1200, 34)
    assert 0 < answer.seconds < PATIENCE_S
    question = ai.questions[-1]
    assert (question.prompt, question.system, question.schema) == ("What?", "Look.", None)
    assert ask(vendor, images=[]).text == "I see nothing"
    assert (ai.questions[-1].images, ai.questions[-1].system) == ([], "")


@EVERY
def test_a_model_gets_several_images_in_order_and_with_their_true_types(
    ai: FakeAI, ask: Callable[..., Any], vendor: str
) -> None:
    images = [an_image("png"), an_image("jpg", 96, 64), an_image("webp", 64, 96)]
    ask(vendor, images=images)
    seen = [(each.real_type, each.width, each.height) for each in ai.questions[-1].images]
    assert seen == [("image/png", 64, 64), ("image/jpeg", 96, 64), ("image/webp", 64, 96)]
    assert [each.data for each in ai.questions[-1].images] == [each.data for each in images]


@EVERY
def test_a_schema_is_enforced(ai: FakeAI, ask: Callable[..., Any], vendor: str) -> None:
    answer = ask(vendor, schema=SCHEMA)
    assert json.loads(answer.text).keys() == {"x", "minimum", "keys"}
    question = ai.questions[-1].schema
    assert question and set(question["properties"]) == {"x", "minimum", "keys"}
    assert vendor != "ollama" or json.dumps(SCHEMA) in ai.questions[-1].prompt


def test_the_longest_answer_is_a_setting_and_ollamas_context_holds_its_images(
    ai: FakeAI, ask: Callable[..., Any], use: Callable[..., None]
) -> None:
    use(PEEKABOO_AI_MAX_TOKENS="99")
    ask("anthropic")
    assert ai.questions[-1].body["max_tokens"] == 99
    ask("ollama", images=[an_image(), an_image()])
    assert ai.questions[-1].body["options"] == {"temperature": 0, "num_ctx": 10240, "num_predict": 99}


def test_a_compatible_server_needs_no_key_and_gets_no_limit(ai: FakeAI, use: Callable[..., None]) -> None:
    ai.keys["openai"] = None
    use(ai.env("openai", "gpt-4o"))
    answer = ask_model(TestDesktop(), [an_image()], "What?", choice=choose_provider())
    assert answer.text == "I see a 64x64 image/png"
    question = ai.questions[-1]
    assert (
        "authorization" not in question.headers
        and not {"max_tokens", "max_completion_tokens"} & question.body.keys()
    )


@EVERY
def test_thinking_is_removed_from_the_answer(ai: FakeAI, ask: Callable[..., Any], vendor: str) -> None:
    ai.brain = script(
        [Reply("A window.", thinking="Hm.", pieces=3), Reply("<think>\nHm.\n</think>\n\nA window.")]
    )
    assert [ask(vendor).text, ask(vendor).text] == ["A window.", "A window."]
    ai.brain = script(["<think>Hm.</think>\n", unclosed := "<think>" * 200_000])
    assert failing(ask, vendor).message.endswith("sent no whole answer: it is empty")
    assert ask(vendor).text == unclosed


@EVERY
def test_the_key_travels_in_a_header_alone(ai: FakeAI, ask: Callable[..., Any], vendor: str) -> None:
    ask(vendor)
    question = ai.questions[-1]
    key = ai.keys.get(vendor)
    assert key is None or [name for name, value in question.headers.items() if key in value]
    assert not question.query and (key is None or key.encode() not in question.raw)


# sizes

GPT4, QWEN2, UNKNOWN = "gpt-4o", "qwen2.5vl:7b", "nobody/unknown"
FAMILIES = [GPT4, QWEN2, UNKNOWN, "claude-sonnet-4-6", "gpt-5.4-mini", "gemini-3.6-flash", "qwen3-vl:8b"]
GOLDEN = [
    *(((2880, 1800), model, (1356, 847)) for model in FAMILIES[2:]),
    ((1280, 800), UNKNOWN, (1280, 800)), ((1366, 768), UNKNOWN, (1366, 768)),
    ((1800, 2880), UNKNOWN, (847, 1356)), ((20000, 3), UNKNOWN, (1568, 1)), ((1, 20000), UNKNOWN, (1, 1568)),
    ((554, 388), UNKNOWN, (554, 388)),
    ((2880, 1800), GPT4, (1228, 767)), ((4000, 500), GPT4, (1568, 196)), ((1024, 768), GPT4, (1024, 768)),
    ((2880, 1800), "openai/gpt-4o", (1228, 767)),
    ((2880, 1800), QWEN2, (1372, 840)), ((20, 20), QWEN2, (896, 896)),
    ((554, 388), QWEN2, (1092, 756)), ((1344, 672), QWEN2, (1344, 672)),
    ((554, 388), "bytedance/ui-tars-1.5-7b", (1092, 756)),
]  # fmt: skip


@pytest.mark.parametrize("size, model, expected", GOLDEN)
def test_an_image_is_fitted_to_a_size_that_the_vendor_does_not_shrink(
    size: tuple[int, int], model: str, expected: tuple[int, int]
) -> None:
    assert fitted_size(model, *size) == expected


def test_what_claude_gets_is_below_its_limits() -> None:
    """ "long edge ≤ 1568 and ≤ 1568 tokens", of patches of 28 pixels."""
    for width in range(28, 4000, 97):
        for height in range(28, 4000, 89):
            fitted = fitted_size("claude-sonnet-4-6", width, height)
            assert max(fitted) <= 1568 and -(-fitted[0] // 28) * -(-fitted[1] // 28) <= 1568


@pytest.mark.parametrize("in_pixels", [False, True])
@pytest.mark.parametrize("model", FAMILIES)
def test_a_fitted_size_fits_unchanged(model: str, in_pixels: bool) -> None:
    for width in (1, 50, *range(100, 6000, 133)):
        for height in (1, 50, *range(90, 4000, 171)):
            size = fitted_size(model, width, height, in_pixels)
            assert fitted_size(model, *size, in_pixels) == size


def test_a_model_that_is_set_to_count_in_pixels_gets_a_size_that_nobody_changes() -> None:
    """Whole patches of 28 pixels, and at least 1024 of them: what it does with other sizes is not known."""
    for model in ("qwen3-vl:8b", UNKNOWN):
        assert fitted_size(model, 554, 388, in_pixels=True) == (1092, 756)
        assert fitted_size(model, 1344, 672, in_pixels=True) == (1344, 672)
    assert fitted_size("gpt-5.4-mini", 554, 388, in_pixels=True) == (554, 388)


@pytest.mark.parametrize("kind", ["png", "jpg", "webp"])
def test_a_large_image_is_scaled_and_sent_with_its_true_type(
    ai: FakeAI, ask: Callable[..., Any], tmp_path: Path, kind: str
) -> None:
    path = Path(make_image(tmp_path, f"large.{kind}", 2880, 1800))
    ask("gemini", images=[path])
    real = "image/jpeg" if kind == "jpg" else "image/png"
    seen = ai.questions[-1].images[0]
    assert (seen.declared_type, seen.real_type, seen.width, seen.height) == (real, real, 1356, 847)
    found = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert [one for one in found if tmp_path / "state" not in one.parents] == [path]


def test_an_image_of_too_many_bytes_becomes_a_jpeg_of_the_best_quality_that_fits(
    ai: FakeAI, ask: Callable[..., Any]
) -> None:
    heavy = picture("png", 640, 480, padding=5_000_000)
    ask("anthropic", images=[ImageData(heavy, ImageInfo("png", 640, 480))])
    seen = ai.questions[-1].images[0]
    assert (seen.real_type, seen.width, seen.height) == ("image/jpeg", 640, 480)
    asked = ["identify", "-format", "%Q", "-"]
    quality = subprocess.run(asked, input=seen.data, capture_output=True, check=True, timeout=PATIENCE_S)
    assert quality.stdout == b"80"


def make_image(folder: Path, name: str, width: int, height: int) -> str:
    subprocess.run(
        ["convert", "-size", f"{width}x{height}", "xc:red", str(folder / name)],
        check=True,
        timeout=PATIENCE_S,
    )
    return str(folder / name)


# errors


@EVERY_CLOUD
def test_a_missing_key_is_reported_before_anything_is_sent(
    ai: FakeAI, use: Callable[..., None], vendor: str
) -> None:
    use(PEEKABOO_AI_PROVIDERS=vendor)
    wrong = failing(ask_model, TestDesktop(), [], "What?", choice=choose_provider(vendor))
    assert wrong.code is ErrorCode.AI_NOT_CONFIGURED and f"{KEYS[vendor]} is not set" in wrong.message


@EVERY_CLOUD
def test_a_wrong_key_is_reported_with_the_vendors_message_and_not_retried(
    ai: FakeAI, ask: Callable[..., Any], vendor: str
) -> None:
    ai.gemini_errors_in_list = True
    ai.fail_with("wrong_key", times=None)
    wrong = failing(ask, vendor)
    assert wrong.code is ErrorCode.AI_PROVIDER_ERROR
    assert "rejected the key: " in wrong.message and ai.questions[-1].refusal in wrong.message
    assert wrong.hint == f"check {KEYS[vendor]}"
    assert len(ai.questions) == 1


@EVERY
def test_a_missing_model_is_reported(ai: FakeAI, ask: Callable[..., Any], vendor: str) -> None:
    wrong = failing(ask, vendor, "no-such-multimodal")
    assert (
        "has no model no-such-multimodal: " in wrong.message and ai.requests[-1].refusal[:60] in wrong.message
    )
    assert wrong.hint.startswith(
        "run: ollama pull no-such-multimodal" if vendor == "ollama" else "choose another model"
    )


@pytest.mark.parametrize(
    "vendor, model",
    [(vendor, name) for vendor, name in (each.split("/", 1) for each, sees in MODELS.items() if not sees)],
)
def test_a_model_that_takes_no_images_is_reported(
    ai: FakeAI, ask: Callable[..., Any], vendor: str, model: str
) -> None:
    wrong = failing(ask, vendor, model)
    assert f"reports that its model {model} takes no images" in wrong.message
    assert VENDORS[vendor] in wrong.hint
    assert len(ai.questions) <= 1


def test_a_blind_ollama_model_is_refused(ai: FakeAI, ask: Callable[..., Any]) -> None:
    ai.blind_text_models = True
    assert "takes no images" in failing(ask, "ollama", "llama3.2:3b").message
    assert ask("ollama", "llama3.2:3b", images=[]).text == "I see nothing"
    ai.fail_with("text_only_model", times=None)
    assert "takes no images: Failed to create new sequence" in failing(ask, "ollama").message
    assert len(ai.questions) == 2


@EVERY
def test_a_rate_limit_is_waited_for_as_long_as_the_vendor_asks(
    ai: FakeAI, ask: Callable[..., Any], vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        client, "_FIRST_PAUSE_S", 3600
    )  # our own pause would be longer than the time for the answer
    ai.fail_with("rate_limited", retry_after=0.1)
    assert ask(vendor).text == "I see a 64x64 image/png"
    first, second = ai.questions
    assert second.at - first.at >= 0.1


@EVERY
def test_a_rate_limit_beyond_our_time_is_reported_at_once(
    ai: FakeAI, ask: Callable[..., Any], vendor: str
) -> None:
    ai.fail_with("rate_limited", times=None, retry_after=3600)
    wrong = failing(ask, vendor)
    assert "refused: too many requests: " in wrong.message and ai.questions[-1].refusal in wrong.message
    assert wrong.hint == "wait 3600 seconds, or choose another provider"
    assert len(ai.questions) == 1


@EVERY
def test_a_server_error_is_retried_and_then_reported(
    ai: FakeAI, ask: Callable[..., Any], vendor: str
) -> None:
    ai.fail_with("server_error", times=None, retry_after=0)
    wrong = failing(ask, vendor)
    assert wrong.message.endswith("failed with a server error (500): An internal error occurred.")
    assert len(ai.questions) == 4


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (
            {"kind": "rate_limited", "text": "You exceeded your current quota (insufficient_quota)."},
            "refused: billing required: You exceeded your current quota (insufficient_quota).",
        ),
        (
            {"kind": "server_error", "status": 400, "text": "Invalid value."},
            "rejected the request (400): Invalid value.",
        ),
        (
            {"kind": "malformed_json", "text": '{"error": {"message": "No endpoints found."}}'},
            "rejected the request (200): No endpoints found.",
        ),
    ],
)
def test_what_will_not_succeed_later_is_not_retried(
    ai: FakeAI, ask: Callable[..., Any], failure: dict[str, Any], message: str
) -> None:
    ai.fail_with(times=None, retry_after=0, **failure)
    assert (failing(ask, "openai").message, len(ai.questions)) == (f"OpenAI {message}", 1)


def test_without_a_wish_of_the_vendor_the_pause_grows(
    ai: FakeAI, ask: Callable[..., Any], pauses: list[float]
) -> None:
    ai.fail_with("overloaded", times=2)
    ask("anthropic")
    first, second = pauses
    assert 0.5 <= first < 1.0 <= second <= 1.5


def test_retries_end_with_the_time(
    ai: FakeAI, ask: Callable[..., Any], pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    ai.fail_with("overloaded", times=None)
    monkeypatch.setattr(client, "_FIRST_PAUSE_S", 60)  # at most 90 with its jitter, and then twice as much
    assert "failed with a server error (503)" in failing(ask, "gemini", timeout_s=119).message
    assert (len(pauses), len(ai.questions)) == (1, 2)


@pytest.mark.parametrize("failure", ["truncated", "empty"])
@EVERY
def test_an_answer_that_was_cut_off_or_is_empty_is_an_error(
    ai: FakeAI, ask: Callable[..., Any], vendor: str, failure: str
) -> None:
    ai.fail_with(failure)
    wrong = failing(ask, vendor)
    assert "sent no whole answer: " in wrong.message and "PEEKABOO_AI_MAX_TOKENS" in wrong.hint


@pytest.mark.parametrize(
    "vendor, failure, reason",
    [
        ("openai", "refused", "sent no whole answer: I cannot help with that."),
        ("openai", "blocked", "sent no whole answer: content_filter"),
        ("gemini", "refused", "sent no whole answer: SAFETY"),
        ("gemini", "blocked", "sent no whole answer: PROHIBITED_CONTENT"),
        ("anthropic", "refused", "sent no whole answer: refusal"),
        ("anthropic", "blocked", "rejected the request (400): Output blocked by content filtering policy"),
    ],
)
def test_a_refusal_is_an_error(
    ai: FakeAI, ask: Callable[..., Any], vendor: str, failure: str, reason: str
) -> None:
    ai.fail_with(failure)
    wrong = failing(ask, vendor)
    assert wrong.message.split(" ", 1)[1] == reason
    assert "choose another provider" in wrong.hint


@pytest.mark.parametrize(
    "failure, message",
    [
        ("malformed_json", "answered with something that is not JSON"),
        ("not_json_content_type", "answered with "),
        ("redirect", "which is not followed"),
        ("huge", "answered with more than 16777216 bytes"),
    ],
)
@EVERY
def test_an_unusable_answer_is_reported(
    ai: FakeAI, ask: Callable[..., Any], vendor: str, failure: str, message: str
) -> None:
    ai.fail_with(failure, size_bytes=17_000_000)
    wrong = failing(ask, vendor)
    assert wrong.code is ErrorCode.AI_PROVIDER_ERROR and message in wrong.message
    assert "_BASE_URL" in wrong.hint
    assert ai.redirected == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_takes_the_key_along(ai: FakeAI, ask: Callable[..., Any], status: int) -> None:
    ai.fail_with("redirect", status=status)
    host = ai.redirect_url.split("//")[1]
    assert f"redirects to {host}, which is not followed" in failing(ask, "openai").message
    assert ai.redirected == []


@pytest.mark.parametrize(
    "body", [[], {}, {"choices": []}, {"choices": [{"message": None}]}, "x", {"candidates": [3]}]
)
@EVERY
def test_an_answer_of_another_form_is_reported(
    ai: FakeAI, ask: Callable[..., Any], vendor: str, body: Any
) -> None:
    ai.fail_with("malformed_json", text=json.dumps(body))
    assert failing(ask, vendor).message.endswith("sent an answer that does not follow its API")


@pytest.mark.parametrize("count", [[], "many", True, 1.5])
def test_tokens_that_are_no_count_are_not_counted(ai: FakeAI, ask: Callable[..., Any], count: Any) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": 7}
    body = {"choices": [{"message": {"content": "A window."}}], "usage": usage}
    ai.fail_with("malformed_json", text=json.dumps(body))
    answer = ask("openai")
    assert (answer.text, answer.tokens_in, answer.tokens_out) == ("A window.", None, 7)


@EVERY_CLOUD
def test_an_answer_holds_neither_the_key_nor_control_characters(
    ai: FakeAI, ask: Callable[..., Any], vendor: str
) -> None:
    ai.brain = script([f"one\r\n\ttwo \x1b[2J\x9b31m \ud800 \u202eabc {ai.keys[vendor]}"])
    assert ask(vendor).text == "one\n\ttwo \ufffd[2J\ufffd31m \ufffd \ufffdabc ***"


def test_a_dropped_connection_is_tried_again(
    ai: FakeAI, ask: Callable[..., Any], pauses: list[float]
) -> None:
    ai.fail_with("connection_reset")
    assert ask("gemini").text == "I see a 64x64 image/png"
    ai.fail_with("connection_reset", times=None)
    assert "closed the connection before its answer was complete" in failing(ask, "gemini").message
    assert len(pauses) == 1 + 3


@pytest.mark.parametrize("failure", ["stalled", "slow_drip"])
def test_a_model_that_takes_too_long_is_left(ai: FakeAI, ask: Callable[..., Any], failure: str) -> None:
    ai.fail_with(failure)
    wrong = failing(ask, "anthropic", timeout_s=0.4)
    assert "did not answer within 0.4 seconds" in wrong.message and "PEEKABOO_AI_TIMEOUT" in wrong.hint


def test_a_cancelled_call_leaves_the_model_at_once(ai: FakeAI, ask: Callable[..., Any]) -> None:
    ai.fail_with("stalled", seconds=600)
    token = CancelToken()
    caught: list[PeekabooError] = []

    def work() -> None:
        use_cancel_token(token)
        caught.append(failing(ask, "openai"))

    thread = threading.Thread(target=work)
    thread.start()
    ai.wait_for_requests(1)
    token.cancel()
    thread.join(PATIENCE_S)
    assert [one.code for one in caught] == [ErrorCode.CANCELLED]


@EVERY
def test_a_server_that_does_not_run_is_told_at_once(
    ai: FakeAI, use: Callable[..., None], vendor: str, pauses: list[float]
) -> None:
    variables = ai.env(vendor, VENDORS[vendor])
    name = {"ollama": "PEEKABOO_OLLAMA_BASE_URL"}.get(vendor, f"{vendor.upper()}_BASE_URL")
    place = f"127.0.0.1:{ai.refused_port()}"
    use({**variables, name: f"http://{place}"})
    wrong = failing(ask_model, TestDesktop(), [an_image()], "What?", choice=choose_provider(vendor))
    assert f"gave no answer: connection refused by {place}" in wrong.message
    assert name in wrong.hint and pauses == []


@pytest.mark.parametrize("base", ["ftp://127.0.0.1/v1", "nonsense", "http://user:pw@127.0.0.1:1/v1"])
def test_an_invalid_address_is_reported_without_being_quoted(use: Callable[..., None], base: str) -> None:
    use(PEEKABOO_AI_PROVIDERS="openai", OPENAI_BASE_URL=base)
    wrong = failing(ask_model, TestDesktop(), [], "What?", choice=choose_provider())
    assert wrong.message == "OpenAI gave no answer: the address is not a plain http or https URL"
    assert "OPENAI_BASE_URL" in wrong.hint


def test_a_key_that_cannot_be_sent_is_reported_without_being_quoted(
    ai: FakeAI, use: Callable[..., None]
) -> None:
    use({**ai.env("openai", "gpt-4o"), "OPENAI_API_KEY": "sk-secret\nX: y"})
    wrong = failing(ask_model, TestDesktop(), [], "What?", choice=choose_provider())
    assert "OPENAI_API_KEY" in wrong.hint and "secret" not in wrong.sentence()
    assert ai.requests == []


def test_a_proxy_is_not_asked_for_this_machine(
    ai: FakeAI, ask: Callable[..., Any], use: Callable[..., None], pauses: list[float]
) -> None:
    proxy = f"http://127.0.0.1:{ai.refused_port()}"
    use(http_proxy=proxy, HTTP_PROXY=proxy)
    assert ask("ollama").text == "I see a 64x64 image/png"
    use(PEEKABOO_OLLAMA_BASE_URL="http://ollama.invalid")
    wrong = failing(ask_model, TestDesktop(), [], "What?", choice=choose_provider("ollama"))
    assert "connection refused by ollama.invalid" in wrong.message  # the proxy refused


@EVERY
def test_neither_key_nor_pixels_are_in_log_error_or_repr(
    ai: FakeAI, ask: Callable[..., Any], vendor: str
) -> None:
    image = an_image()
    pixels = base64.b64encode(image.data).decode()
    key = ai.keys.get(vendor) or "an-invented-key"
    with collected_debug_lines() as lines:
        answer = ask(vendor, images=[image])
        ai.fail_with("server_error", status=400, text=f"your key {key} sent {pixels}")
        wrong = failing(ask, vendor, images=[image])
    for text in [*lines, repr(answer), repr(wrong), wrong.sentence(), wrong.details, repr(settings())]:
        assert (key not in text or vendor == "ollama") and pixels[:64] not in text
    assert any(f"{vendor}/{VENDORS[vendor]} answered in" in line and "64x64 png" in line for line in lines)


# ocr


def test_ocr_reads_the_text_without_a_key_or_a_network(use: Callable[..., None], tmp_path: Path) -> None:
    use(PEEKABOO_AI_PROVIDERS="ocr")
    path = save(tmp_path, "shot.png", picture())
    result = analyze_file(TestDesktop(("Hello", "", "w\u202eorld")), path, "What does it say?")
    assert (result.text, result.data["model_used"]) == ("Hello\nw orld", "ocr/local")
    assert analyze_file(TestDesktop(), path, "").text == "No text was found in this image."
    for images, schema in (([], None), ([an_image()], SCHEMA)):
        wrong = failing(ask_model, TestDesktop(), images, "Draw.", choice=choose_model("ocr"), schema=schema)
        assert wrong.code is ErrorCode.INVALID_ARGUMENT


# analyze


def test_analyze_answers_as_the_specification_says(
    ai: FakeAI, use: Callable[..., None], tmp_path: Path
) -> None:
    use({**ai.env("openai", "x"), "PEEKABOO_AI_PROVIDERS": "ollama/llava:latest,openai/gpt-4o"})
    path = save(tmp_path, "shot.PNG", picture("jpeg"))
    result = analyze_file(TestDesktop(), "~/shot.PNG", "What?")
    assert result.text == result.data["analysis_text"] == "I see a 64x48 image/jpeg"
    assert result.data["model_used"] == "ollama/llava:latest"
    assert ai.questions[-1].prompt == "What?"
    result = analyze_file(TestDesktop(), path, " \n", "openai", "gpt-5.5")
    assert result.data["model_used"] == "openai/gpt-5.5"
    assert ai.questions[-1].images[0].declared_type == "image/jpeg"
    assert ai.questions[-1].prompt == "Please describe what you see in this image."


@pytest.mark.parametrize(
    "name, found",
    [("a.gif", ".gif"), ("a.tiff", ".tiff"), ("a", "none"), ("/etc/passwd", "none"), ("", "none")],
)
def test_the_format_is_checked_first_of_all(use: Callable[..., None], name: str, found: str) -> None:
    wrong = failing(analyze_file, TestDesktop(), name, "What?")
    assert (wrong.code, wrong.message) == (
        ErrorCode.INVALID_ARGUMENT,
        f"Unsupported image format: {found}. Supported formats: .png, .jpg, .jpeg, .webp",
    )


def test_the_configuration_and_the_provider_are_checked_before_the_file(use: Callable[..., None]) -> None:
    assert failing(analyze_file, TestDesktop(), "/nowhere/a.png", "What?").code is ErrorCode.AI_NOT_CONFIGURED
    use(PEEKABOO_AI_PROVIDERS="ocr")
    wrong = failing(analyze_file, TestDesktop(), "/nowhere/a.png", "What?", "gemini")
    assert "is not enabled" in wrong.message
    wrong = failing(analyze_file, TestDesktop(), "/nowhere/a.png", "What?")
    assert (wrong.code, wrong.message) == (
        ErrorCode.FILE_IO_ERROR,
        "/nowhere/a.png: No such file or directory",
    )


@pytest.mark.parametrize(
    "data",
    [
        b"root:x:0:0",
        b"",
        picture("png")[:20],
        picture("png")[:-20],
        picture("gif"),
        picture("webp", 16000, 16000),
    ],
)
def test_an_unsuitable_file_is_not_sent(
    ai: FakeAI, use: Callable[..., None], tmp_path: Path, data: bytes
) -> None:
    use(ai.env("openai", "gpt-4o"))
    wrong = failing(analyze_file, TestDesktop(), save(tmp_path, "a.png", data), "What?")
    assert (wrong.code, wrong.message) == (
        ErrorCode.INVALID_ARGUMENT,
        f"{tmp_path}/a.png is not a whole image that a model takes",
    )
    assert ai.questions == []


def test_a_pipe_a_folder_and_a_huge_file_are_refused_unread(use: Callable[..., None], tmp_path: Path) -> None:
    use(PEEKABOO_AI_PROVIDERS="ocr")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    os.truncate(save(tmp_path, "huge.png", picture()), 70_000_000)
    for name in ("pipe.png", "folder.png", "huge.png"):
        wrong = failing(analyze_file, TestDesktop(), str(tmp_path / name), "What?")
        assert wrong.code is ErrorCode.INVALID_ARGUMENT and "at most 64 MB" in wrong.hint


def test_a_jpeg_with_the_name_of_a_png_is_sent_as_a_jpeg(
    ai: FakeAI, use: Callable[..., None], tmp_path: Path
) -> None:
    use(ai.env("openai", "gpt-5.4-mini"))
    analyze_file(TestDesktop(), save(tmp_path, "a.png", picture("jpeg")), "What?")
    assert ai.questions[-1].images[0].declared_type == "image/jpeg"
