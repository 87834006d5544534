"""Asking models: the choice of a model, its requests, and errors."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Optional
from unittest.mock import Mock

import pytest
from fake_ai import MODELS, FakeAI, Reply, picture, script
from samples import error_of
from worlds import PATIENCE_S, wait_for

from peekaboo_min.ai import client, providers
from peekaboo_min.ai.client import ModelChoice, analyze_file, ask_model, choose_model, choose_provider
from peekaboo_min.ai.grid import fitted_size
from peekaboo_min.core.call import time_budget, use_cancel_token
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.log import collected_debug_lines
from peekaboo_min.core.models import ImageData, ImageInfo, RecognisedText, Rect
from peekaboo_min.core.settings import settings
from peekaboo_min.desktop.images import fit, load_image, resized
from peekaboo_min.desktop.x11.backend import X11Desktop
from peekaboo_min.system.image_files import sniff_image
from peekaboo_min.system.web import WebError, ask_json

VENDORS = {name: vendor.default_model for name, vendor in providers.VENDORS.items()}
EVERY = pytest.mark.parametrize("vendor", VENDORS)
SCHEMA = {
    "type": "object",
    "properties": {"x": {"type": ["integer", "null"]}, "minimum": {"type": "number"}},
    "required": ["x", "minimum"],
    "additionalProperties": False,
}
Env = Callable[..., None]
Ask = Callable[..., Any]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the pauses before retries instead of sleeping."""
    noted: list[float] = []
    monkeypatch.setattr(client, "pause", noted.append)
    return noted


class OcrDesktop(X11Desktop):
    """Scales with the real program, which needs no display; reads the text it was given."""

    def __init__(self, lines: tuple[str, ...] = ()) -> None:
        self.lines = lines

    def read_text(self, path: Path) -> list[RecognisedText]:
        assert sniff_image(path.read_bytes()) and path.stat().st_mode & 0o777 == 0o600
        return [RecognisedText(line, Rect(0, 0, 1, 1), 1.0) for line in self.lines]


@pytest.fixture
def ask(ai: FakeAI, environment: Env) -> Ask:
    """Asks a vendor of the fake about one small image."""

    def ask_vendor(vendor: str, model: str = "", images: Optional[list[Any]] = None, **more: Any) -> Any:
        environment(**ai.env(vendor, model or VENDORS[vendor]))
        images = [an_image()] if images is None else images
        choice = choose_model(f"{vendor}/{model}")
        return ask_model(OcrDesktop(), images, "What?", choice=choice, **more)

    return ask_vendor


def an_image(kind: str = "png", width: int = 64, height: int = 64, padding: int = 0) -> ImageData:
    data = picture(kind.replace("jpg", "jpeg"), width, height, padding)
    return ImageData(data, ImageInfo(kind, width, height))


def save(folder: Path, name: str, data: bytes) -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


def base_variable(vendor: str) -> str:
    return "PEEKABOO_OLLAMA_BASE_URL" if vendor == "ollama" else f"{vendor.upper()}_BASE_URL"


# which provider


def test_providers_are_read_with_their_default_models() -> None:
    read = client.parse_providers("ollama,openai/;gemini, OpenAI / gpt-4o ,grok/4,ocr, ")
    names = ["ollama/qwen3-vl:8b", "openai/gpt-5.4-mini", "gemini/gemini-3.6-flash", "openai/gpt-4o"]
    assert [choice.name for choice in read] == [*names, "grok/4", "ocr/local"]


NOT_CONFIGURED = (
    "AI analysis not configured on this server. Set the PEEKABOO_AI_PROVIDERS environment variable."
)
NOT_ENABLED = "Provider 'gemini' is not enabled in server's PEEKABOO_AI_PROVIDERS configuration."
NO_GROK = "there is no provider 'grok'; the providers are ollama, openai, gemini, anthropic, ocr"


def test_provider_that_is_asked_for_is_not_probed(environment: Env) -> None:
    environment(PEEKABOO_AI_PROVIDERS="ollama/llava:7b,openai/gpt-4o,openai/o3", OPENAI_API_KEY="x")
    assert choose_provider("openai") == ModelChoice("openai", "gpt-4o")
    assert choose_provider(" OpenAI ", "gpt-5.5") == ModelChoice("openai", "gpt-5.5")
    assert error_of(choose_provider, "gemini").hint == "it enables ollama, openai"
    assert "more than one model" in error_of(choose_model, "openai/a;ocr").message


def test_provider_auto_takes_an_ollama_that_lists_nothing_and_passes_over_none_that_fails(
    environment: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(PEEKABOO_AI_PROVIDERS="ollama/llava,ocr")
    shown = Mock(side_effect=[{}, {"capabilities": []}, [1], WebError("status", "", 500)])
    monkeypatch.setattr(providers, "ask_json", shown)
    assert {choose_provider().provider for _ in range(3)} == {"ollama"}
    assert "a server error (500)" in error_of(choose_provider).message


def test_provider_auto_is_the_first_that_is_operational(ai: FakeAI, environment: Env) -> None:
    environment(GEMINI_API_KEY="k", PEEKABOO_AI_PROVIDERS="grok/4,openai/a,ollama/b,gemini/g,ocr")
    environment(PEEKABOO_OLLAMA_BASE_URL=f"http://127.0.0.1:{ai.refused_port()}")
    with collected_debug_lines() as lines:
        assert choose_provider() == choose_provider("auto") == ModelChoice("gemini", "g")
    assert lines == [f"PEEKABOO_AI_PROVIDERS: {NO_GROK}; grok/4 is skipped"] * 2
    ai._held[-1].listen()  # Ollama accepts connections now, but does not answer
    with time_budget(0.3):
        assert choose_provider("auto", "asked") == ModelChoice("gemini", "asked")
    environment(PEEKABOO_OLLAMA_BASE_URL="localhost:11434")  # it has no scheme
    assert "check PEEKABOO_OLLAMA_BASE_URL" in error_of(choose_provider).message


def test_provider_auto_reports_why_each_is_not_operational(ai: FakeAI, environment: Env) -> None:
    host = f"127.0.0.1:{ai.refused_port()}"
    environment(PEEKABOO_OLLAMA_BASE_URL=f"http://{host}/", PEEKABOO_AI_PROVIDERS="ollama;openai;grok")
    wrong = error_of(choose_provider)
    assert wrong.message == "No configured AI providers in PEEKABOO_AI_PROVIDERS are currently operational."
    assert f"ollama: Ollama did not answer: connection refused by {host}; start it" in wrong.hint
    assert "openai: OPENAI_API_KEY is not set" in wrong.hint and NO_GROK in wrong.hint


@pytest.mark.parametrize("model", ["qwen3-vl:8b", "LLaVA", "llava:latest", "hf.co/someone/vision:q4"])
def test_provider_auto_accepts_a_model_that_ollama_has(ai: FakeAI, environment: Env, model: str) -> None:
    environment(**ai.env("ollama", model))
    assert choose_provider() == ModelChoice("ollama", model)


@pytest.mark.parametrize(
    ("providers", "model", "problem"),
    [
        ("ollama/llava:7b,openai/gpt-4o", None, "Ollama has no model llava:7b: "),
        ("ollama/llama3.2:3b,openai/gpt-4o", None, "its model llama3.2:3b does not accept images"),
        ("gemini/g,ollama/llava,openai/gpt-4o", "lava", "run: ollama pull lava,"),
    ],
)
def test_provider_auto_asks_no_other_where_a_model_is_missing(
    ai: FakeAI, environment: Env, tmp_path: Path, providers: str, model: Optional[str], problem: str
) -> None:
    """ "Ollama (if using local Ollama for analysis) + instructions to pull models." """
    environment(**{**ai.env("openai", "x"), "PEEKABOO_AI_PROVIDERS": providers})
    wrong = error_of(analyze_file, OcrDesktop(), save(tmp_path, "shot.png", picture()), "?", model=model)
    assert problem in wrong.message
    assert [each for each in ai.requests if each.vendor != "ollama"] == ai.questions == []


def test_provider_status_covers_every_provider_and_asks_no_cloud(ai: FakeAI, environment: Env) -> None:
    """ "If `item_type === "server_status"`: Handler directly calls generateServerStatusString()" """
    environment(**{**ai.env("openai", "x"), "GEMINI_API_KEY": "wrong"})
    environment(PEEKABOO_AI_PROVIDERS="ollama/llava,openai/gpt-5.5,openai/gpt-1,gemini,anthropic,ocr,grok/4")
    expected = dict.fromkeys(
        ("ollama/llava", "openai/gpt-5.5", "openai/gpt-1", "gemini/gemini-3.6-flash"), ""
    )
    expected |= {
        "anthropic/claude-sonnet-5": "ANTHROPIC_API_KEY is not set",
        "ocr/local": "",
        "grok/4": NO_GROK,
    }
    assert {each.choice.name: each.problem for each in client.provider_status()} == expected
    assert [each for each in ai.requests if each.vendor != "ollama"] == []


# requests


def test_gemini_model_is_quoted_in_the_address(ai: FakeAI, ask: Ask) -> None:
    error_of(ask, "gemini", "a/b?c=d")
    assert (ai.requests[-1].query, ai.requests[-1].is_question) == ({}, True)
    assert ai.requests[-1].path == "/v1beta/models/a%2Fb%3Fc%3Dd:generateContent"


PNG = base64.b64encode(picture("png", 64, 64)).decode()
ANSWER_IN_JSON = "Answer with one JSON object that fits this JSON schema, and with nothing else:"
PROMPT = f"What?\n\n{ANSWER_IN_JSON}\n{json.dumps(SCHEMA)}"
URL = {"url": f"data:image/png;base64,{PNG}", "detail": "high"}
SOURCE = {"type": "base64", "media_type": "image/png", "data": PNG}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}
OPENAI_PARTS = [{"type": "text", "text": PROMPT}, {"type": "image_url", "image_url": URL}]
GEMINI_PARTS = [{"text": "What?"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]
ANTHROPIC_PARTS = [{"type": "text", "text": "What?"}, {"type": "image", "source": SOURCE}]
GEMINI_A = {"content": {"parts": [{}, {"text": "A"}]}, "finishReason": "STOP"}
SYSTEM = {"role": "system", "content": "Look."}
# each vendor's documented request; OpenAI's is the one for compatible servers
BODIES: dict[str, dict[str, Any]] = {
    "ollama": {
        "model": "qwen3-vl:8b",
        "prompt": PROMPT,
        "system": "Look.",
        "images": [PNG],
        "format": SCHEMA,
        "stream": False,
        "think": False,
        "options": {"temperature": 0, "num_ctx": 8192, "num_predict": 99},
    },
    "openai": {
        "model": "gpt-5.4-mini",
        "messages": [SYSTEM, {"role": "user", "content": OPENAI_PARTS}],
        "response_format": FORMAT,
    },
    "gemini": {
        "contents": [{"role": "user", "parts": GEMINI_PARTS}],
        "systemInstruction": {"parts": [{"text": "Look."}]},
        "generationConfig": {
            "maxOutputTokens": 99,
            "mediaResolution": "MEDIA_RESOLUTION_HIGH",
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
        },
    },
    "anthropic": {
        "model": "claude-sonnet-5",
        "max_tokens": 99,
        "system": "Look.",
        "messages": [{"role": "user", "content": ANTHROPIC_PARTS}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    },
}


@EVERY
def test_model_gets_the_request_that_its_vendor_documents(
    ai: FakeAI, ask: Ask, environment: Env, vendor: str
) -> None:
    environment(PEEKABOO_AI_MAX_TOKENS="99")
    answer, key = ask(vendor, system="Look.", schema=SCHEMA), ai.keys.get(vendor)
    assert json.loads(answer.text).keys() == {"x", "minimum"}
    assert answer._replace(text="", seconds=1.0) == ("", 1200, 34, "", f"{vendor}/{VENDORS[vendor]}", 1.0)
    assert 0 < answer.seconds < PATIENCE_S
    question = ai.questions[-1]
    assert question.body == BODIES[vendor]
    assert key is None or [value for value in question.headers.values() if key in value]
    assert not question.query and (key is None or key.encode() not in question.raw)


@EVERY
def test_model_gets_images_of_several_types_or_none(ai: FakeAI, ask: Ask, vendor: str) -> None:
    images = [an_image("png"), an_image("jpg", 96, 64), an_image("webp", 64, 96)]
    ask(vendor, images=images)
    assert [each.data for each in ai.questions[-1].images] == [each.data for each in images]
    assert ask(vendor, images=[]).text == "I see nothing"
    question = ai.questions[-1]
    assert (question.prompt, question.images, question.system, question.schema) == ("What?", [], "", None)


def test_ollama_gets_a_longer_context_for_two_images(ai: FakeAI, ask: Ask) -> None:
    ask("ollama", images=[an_image()] * 2)
    assert ai.questions[-1].body["options"]["num_ctx"] == 10240


def test_openai_itself_gets_a_limit_and_enforces_the_schema(
    ai: FakeAI, ask: Ask, environment: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(OPENAI_BASE_URL="https://api.openai.com/v1/")
    assert not providers._is_compatible_server(), "a slash at the end changes nothing"
    monkeypatch.setattr(providers, "_is_compatible_server", lambda: False)
    ask("openai", schema=SCHEMA)
    assert ai.questions[-1].prompt == "What?"
    assert ai.questions[-1].body["max_completion_tokens"] == settings().ai_max_tokens


@pytest.mark.parametrize(
    ("host", "needs_key"),
    [
        *(("localhost:1234", False), ("192.168.7.4:1234", False), ("[fd00::1]", False), ("llm.local", False)),
        *(("models.example.com", True), ("8.8.8.8", True), ("[bad", True)),
    ],
)
def test_server_without_a_key_is_operational_only_at_a_local_address(
    environment: Env, host: str, needs_key: bool
) -> None:
    environment(PEEKABOO_AI_PROVIDERS="openai/a", OPENAI_BASE_URL=f"http://{host}/v1")
    (status,) = client.provider_status()
    assert status.problem == ("OPENAI_API_KEY is not set" if needs_key else "")


def test_model_of_a_local_server_needs_no_key(ai: FakeAI, environment: Env) -> None:
    ai.keys["openai"] = None
    environment(**ai.env("openai", "gpt-4o"))
    ask_model(OcrDesktop(), [an_image()], "What?", choice=choose_provider())
    assert "authorization" not in ai.questions[-1].headers


def test_model_has_the_time_that_is_set_and_three_seconds_for_a_probe(
    ai: FakeAI, ask: Ask, environment: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds: list[float] = []

    def send(url: str, timeout_s: float, **more: Any) -> Any:
        seconds.append(timeout_s)
        time.sleep(0.6 if url.endswith("/api/show") else 0)
        return ask_json(url, timeout_s=timeout_s, **more)

    monkeypatch.setattr(providers, "ask_json", send)
    ask("ollama")
    environment(PEEKABOO_AI_TIMEOUT="500")
    ask("gemini")
    ask("openai", timeout_s=70)
    environment(**ai.env("ollama", "llava"))
    choose_provider()
    with time_budget(2):
        choose_provider()
    assert [round(each) for each in seconds] == [120, 119, 500, 70, 3, 2]


@EVERY
def test_model_that_thinks_answers_without_its_thoughts(ai: FakeAI, ask: Ask, vendor: str) -> None:
    thinking = Reply("A window.", thinking="Hm.", pieces=3)
    again = "<think>\nHm.\n</think> <think>Hm.</think>\n\nA window: </think>."
    ai.brain = script([thinking, again, "<think>Hm.</think>\n", " \n"])
    assert [ask(vendor).text for _ in range(2)] == ["A window.", "A window: </think>."]
    messages = {error_of(ask, vendor).message.split(" ", 1)[1] for _ in range(2)}
    assert messages == {"sent no complete answer: it is empty"}


@pytest.mark.parametrize(
    ("vendor", "reply"),
    [
        ("ollama", {"response": "A"}),
        (
            "openai",
            {"choices": [{"message": {"content": [{}, {"text": "A"}]}}], "error": None, "usage": None},
        ),
        ("gemini", {"candidates": [GEMINI_A], "promptFeedback": None, "usageMetadata": None}),
        ("gemini", {"candidates": [GEMINI_A]}),
        ("anthropic", {"usage": None, "content": [{"type": "text", "text": text} for text in (None, "A")]}),
    ],
)
def test_answer_without_token_counts_is_read(ai: FakeAI, ask: Ask, vendor: str, reply: Any) -> None:
    ai.fail_with("malformed_json", text=json.dumps(reply))
    answer = ask(vendor)
    assert (answer.text, answer.tokens_in, answer.tokens_out) == ("A", None, None)


def test_model_that_sends_control_characters_is_cleaned(ai: FakeAI, ask: Ask) -> None:
    ai.brain = script(["one\r\n\ttwo \x1b[2J\x9b31m \ud800 \u202eabc"])
    assert ask("openai").text == "one\n\ttwo \ufffd[2J\ufffd31m \ufffd \ufffdabc"


@pytest.mark.parametrize("key", ["k", "action", '"action":'])
def test_model_answer_is_whole_whatever_the_key_until_a_person_reads_it(
    ai: FakeAI, environment: Env, tmp_path: Path, key: str
) -> None:
    environment(**{**ai.env("openai", "gpt-4o"), "OPENAI_API_KEY": key})
    ai.keys["openai"] = key
    answer, choice = '{"action": "click"}', choose_model("openai/gpt-4o")
    ai.brain = script([answer, answer])
    assert ask_model(OcrDesktop(), [], "What?", choice=choice).text == answer
    shown = analyze_file(OcrDesktop(), save(tmp_path, "shot.png", picture()), "What?").text
    assert shown == (answer if len(key) < 8 else '{*** "click"}')


# sizes

GPT4, QWEN2, UNKNOWN = "gpt-4o", "qwen2.5vl:7b", "nobody/unknown"
FAMILIES = [GPT4, QWEN2, UNKNOWN, "claude-sonnet-4-6", "gpt-5.4-mini", "gemini-3.6-flash", "qwen3-vl:8b"]


@pytest.mark.parametrize(
    ("size", "model", "expected"),
    [
        *(((2880, 1800), model, (1356, 847)) for model in FAMILIES[2:]),
        ((2880, 1800), GPT4, (1228, 767)),
        ((4000, 500), GPT4, (1568, 196)),
        ((2880, 1800), "openai/gpt-4o", (1228, 767)),
        ((2880, 1800), QWEN2, (1372, 840)),
        ((20, 20), QWEN2, (896, 896)),
        ((554, 388), QWEN2, (1092, 756)),
        ((554, 388), "bytedance/ui-tars-1.5-7b", (1092, 756)),
    ],
)
def test_fitted_size_is_one_that_the_vendor_does_not_change(
    size: tuple[int, int], model: str, expected: tuple[int, int]
) -> None:
    assert fitted_size(model, *size) == expected


def test_fitted_size_for_pixels_has_whole_patches() -> None:
    """Expect at least 1024 patches of 28 pixels, for PEEKABOO_AI_GRID=pixels."""
    sizes = [
        fitted_size(model, 554, 388, in_pixels=True) for model in ("qwen3-vl:8b", UNKNOWN, "gpt-5.4-mini")
    ]
    assert sizes == [(1092, 756), (1092, 756), (554, 388)]


@pytest.mark.parametrize("in_pixels", [False, True])
@pytest.mark.parametrize("model", FAMILIES)
def test_fitted_size_fits_unchanged(model: str, in_pixels: bool) -> None:
    """Claude: "long edge ≤ 1568 and ≤ 1568 tokens", of patches of 28 pixels."""
    for width in (1, 50, *range(100, 6000, 133)):
        for height in (1, 50, *range(90, 4000, 171)):
            size = fitted_size(model, width, height, in_pixels)
            assert fitted_size(model, *size, in_pixels) == size
            patches = -(-size[0] // 28) * -(-size[1] // 28)
            assert "claude" not in model or (max(size) <= 1568 and patches <= 1568)


def test_analyzed_image_ignores_the_grid_of_coordinates(
    ai: FakeAI, ask: Ask, tmp_path: Path, environment: Env
) -> None:
    subprocess.run(
        ["convert", "-size", "64x64", "xc:red", tmp_path / "a.png"], check=True, timeout=PATIENCE_S
    )
    environment(PEEKABOO_AI_GRID="pixels")
    ask("gemini", images=[load_image(tmp_path / "a.png")])
    assert ai.questions[-1].images[0].width == 64


@pytest.mark.parametrize("kind", ["png", "jpg", "webp"])
def test_image_that_is_large_is_scaled_and_sent_with_its_true_type(
    ai: FakeAI, ask: Ask, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"large.{kind}"
    subprocess.run(["convert", "-size", "2880x1800", "xc:red", path], check=True, timeout=PATIENCE_S)
    ask("gemini", images=[load_image(path)])
    real = "image/jpeg" if kind == "jpg" else "image/png"
    seen = ai.questions[-1].images[0]
    assert (seen.declared_type, seen.real_type, seen.width, seen.height) == (real, real, 1356, 847)


def test_image_of_too_many_bytes_becomes_the_best_jpeg_that_fits(ai: FakeAI, ask: Ask) -> None:
    rest = len(picture("png", 640, 480, 9)) - 9
    for size, kind in ((3_600_000, "png"), (3_600_001, "jpeg")):
        ask("anthropic", images=[an_image("png", 640, 480, size - rest)])
        seen = ai.questions[-1].images[0]
        assert (seen.real_type, seen.width, seen.height) == (f"image/{kind}", 640, 480)
    argv = ["identify", "-format", "%Q", "-"]
    quality = subprocess.run(argv, input=seen.data, capture_output=True, check=True, timeout=PATIENCE_S)
    assert quality.stdout == b"80"


def test_image_gets_the_best_quality_that_fits(tmp_path: Path) -> None:
    argv = ["convert", "-size", "90x60", "-seed", "1", "plasma:", tmp_path / "a.png"]
    subprocess.run(argv, check=True, timeout=PATIENCE_S)
    desktop, image = X11Desktop(), load_image(tmp_path / "a.png")
    assert (image.label, image.source_path) == ("a.png", f"{tmp_path}/a.png")
    sizes = [len(resized(desktop, image, (90, 60), "jpg", quality).data) for quality in (80, 60, 40, 20)]
    fitted = [len(fit(desktop, image, (90, 60), most_bytes).data) for most_bytes in (*sizes, 1)]
    assert fitted == [*sizes, sizes[-1]], "the last one if none fits"
    assert resized(desktop, image, (50, 50), "png").info == ImageInfo("png", 50, 50)


# errors

NO_JSON = "sent a reply that is not JSON"
OTHER_FORM = "sent an answer that does not follow its API"
OTHER_BODIES = ("[]", "{}", '{"choices": []}', '{"candidates": [3]}')
LONG = "a b " * 101
DEEP = "[" * 399 + " " + "[" * 9999
FULL = "model_context_window_exceeded"
BLIND = ("missing data required for image", "only supports text", "not a multimodal", "n't support vision")
# A failure and its options, parts of the message and the hint, and how often the model is asked.
FAILED: list[tuple[str, dict[str, Any], str, str, int]] = [
    ("wrong_key", {}, "rejected the key: {refusal}", "check {key}", 1),
    ("server_error", {"status": 403}, "rejected the key: An internal error", "check {key}", 1),
    ("missing_model", {}, "has no model {model}: ", "{get_model}, or check {base}", 1),
    ("rate_limited", {"retry_after": 3600}, "too many requests: {refusal}", "wait 3600 seconds, or", 1),
    ("rate_limited", {}, "refused: too many requests: {refusal}", "wait a while, or", 4),
    ("rate_limited", {"retry_after": float("nan")}, "refused: too many requests", "wait a while, or", 4),
    ("rate_limited", {"text": "insufficient_quota"}, "billing required: insuff", "check your plan", 1),
    ("server_error", {"status": 402}, "refused: billing required: An internal", "check your plan", 1),
    ("server_error", {}, "failed with a server error (500): An internal error", "try again later", 4),
    ("server_error", {"status": 408}, "failed with a server error (408): An", "try again later", 4),
    ("server_error", {"status": 400, "text": "No."}, "rejected the request (400): No.", "rephrase", 1),
    ("server_error", {"status": 400, "text": LONG}, LONG[:399], "rephrase", 1),
    ("malformed_json", {"text": '{"error": {"message": "No."}}'}, "request (200): No.", "rephrase", 1),
    ("malformed_json", {}, NO_JSON, "check {base}", 1),
    *(("malformed_json", {"text": body}, OTHER_FORM, "check {base}", 1) for body in OTHER_BODIES),
    ("malformed_json", {"status": 502, "text": "N\xe3o"}, "error (502): N\ufffdo", "try again later", 4),
    ("malformed_json", {"status": 502, "text": "\n<html>"}, "a server error (502)", "try again later", 4),
    ("malformed_json", {"status": 400, "text": DEEP}, "request (400): [[[", "rephrase", 1),
    ("malformed_json", {"status": 502, "text": "[]"}, "a server error (502)", "try again later", 4),
    *(("server_error", {"status": 400, "text": text}, "not accept images: ", "such as", 1) for text in BLIND),
    ("server_error", {"status": 400, "text": "Your credit balance is low"}, "billing required: ", "plan", 1),
    ("malformed_json", {"status": 300}, "redirects to another address", "check {base}", 1),
    ("redirect", {}, "redirects to {host}; redirects are not followed", "check {base}", 1),
    ("huge", {}, "sent more than 16777216 bytes", "check {base}", 1),
    ("connection_reset", {}, "closed the connection before its reply was complete", "try again", 4),
    ("truncated", {}, "sent no complete answer: ", "raise PEEKABOO_AI_MAX_TOKENS", 1),
    ("empty", {}, "sent no complete answer: ", "raise PEEKABOO_AI_MAX_TOKENS", 1),
]


@EVERY
@pytest.mark.parametrize("failed", FAILED, ids=lambda failed: failed[0])
def test_ask_model_reports_a_failure_and_retries_what_may_pass(
    ai: FakeAI, ask: Ask, pauses: list[float], vendor: str, failed: Any
) -> None:
    kind, options, message, hint, questions = failed
    ai.gemini_errors_in_list = "retry_after" not in options
    ai.fail_with(kind, times=None, **options)
    wrong = error_of(ask, vendor)
    model = VENDORS[vendor]
    get_model = f"run: ollama pull {model}" if vendor == "ollama" else "choose another model"
    names = {"refusal": ai.questions[-1].refusal, "model": model, "get_model": get_model}
    base, host = base_variable(vendor), ai.redirect_url.split("//")[1]
    names.update(base=base, key=base if vendor == "ollama" else f"{vendor.upper()}_API_KEY", host=host)
    assert wrong.code is ErrorCode.AI_PROVIDER_ERROR
    assert message.format(**names) in wrong.message and hint.format(**names) in wrong.hint, wrong
    assert (len(ai.questions), len(pauses), ai.redirected) == (questions, questions - 1, [])
    assert len(wrong.message) <= len("Anthropic rejected the request (400): ") + 399
    assert "<" not in wrong.message, "a web page is no message"


@pytest.mark.parametrize(
    ("vendor", "failure", "reason"),
    [
        ("openai", "refused", "sent no complete answer: I cannot help with that."),
        ("openai", "blocked", "sent no complete answer: content_filter"),
        ("gemini", "refused", "sent no complete answer: SAFETY"),
        ("gemini", "blocked", "sent no complete answer: PROHIBITED_CONTENT"),
        ("anthropic", "refused", "sent no complete answer: refusal"),
        ("openai", {"choices": [{"message": {"refusal": "No \x1b[2J"}}]}, "sent no complete answer: No  [2J"),
        ("gemini", {"candidates": [{"content": None, "finishReason": "X"}]}, "sent no complete answer: X"),
        ("anthropic", {"content": [], "stop_reason": FULL}, f"sent no complete answer: {FULL}"),
        ("anthropic", "blocked", "rejected the request (400): Output blocked by content filtering policy"),
    ],
)
def test_ask_model_reports_a_models_refusal(
    ai: FakeAI, ask: Ask, vendor: str, failure: Any, reason: str
) -> None:
    is_reply = isinstance(failure, dict)
    ai.fail_with("malformed_json" if is_reply else failure, text=json.dumps(failure) if is_reply else "")
    wrong = error_of(ask, vendor)
    assert wrong.message.split(" ", 1)[1] == reason
    assert "choose another provider" in wrong.hint


@pytest.mark.parametrize("name", [name for name, sees in MODELS.items() if not sees])
def test_ask_model_reports_a_model_that_takes_no_images(ai: FakeAI, ask: Ask, name: str) -> None:
    vendor, model = name.split("/", 1)
    wrong = error_of(ask, vendor, model)
    assert f"reports that its model {model} does not accept images" in wrong.message
    assert VENDORS[vendor] in wrong.hint
    assert len(ai.questions) == (vendor != "ollama")
    assert ask(vendor, model, images=[]).text == "I see nothing"
    ai.fail_with("text_only_model")
    assert "does not accept images: " in error_of(ask, vendor).message


@pytest.mark.parametrize("vendor", ["openai", "gemini", "anthropic"])
def test_requested_provider_without_a_key_is_an_error(environment: Env, vendor: str) -> None:
    environment(PEEKABOO_AI_PROVIDERS=vendor)
    wrong = error_of(choose_provider, vendor)
    assert wrong.code is ErrorCode.AI_NOT_CONFIGURED
    assert f"{vendor.upper()}_API_KEY is not set" in wrong.message
    assert error_of(choose_model, vendor).message == wrong.message


@EVERY
def test_ask_model_waits_as_long_as_the_vendor_asks(
    ai: FakeAI, ask: Ask, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_FIRST_PAUSE_S", 3600)  # longer than the time for the answer
    ai.fail_with("rate_limited", retry_after=0.1)
    assert ask(vendor).text == "I see a 64x64 image/png"
    first, second = ai.questions
    assert second.at - first.at >= 0.1


def test_ask_model_waits_longer_each_time_and_never_past_its_time(
    ai: FakeAI, ask: Ask, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    ai.fail_with("overloaded", times=3)
    ask("anthropic")
    first, second, third = pauses
    assert 0.5 <= first <= 0.75 < 1.0 <= second <= 1.5 < 2.0 <= third <= 3.0
    pauses.clear()
    ai.fail_with("overloaded", times=None)
    monkeypatch.setattr(client, "_FIRST_PAUSE_S", 60)  # at most 90 with its jitter, and then twice as much
    assert "failed with a server error (503)" in error_of(ask, "gemini", timeout_s=119).message
    assert len(pauses) == 1


@pytest.mark.parametrize("failure", ["stalled", "slow_drip"])
def test_ask_model_leaves_a_model_that_takes_too_long(ai: FakeAI, ask: Ask, failure: str) -> None:
    ai.fail_with(failure)
    wrong = error_of(ask, "anthropic", timeout_s=0.4)
    assert "did not answer within 0.4 seconds" in wrong.message and "PEEKABOO_AI_TIMEOUT" in wrong.hint
    assert len(ai.questions) == 1


@pytest.mark.parametrize("vendor", ["ollama", "openai"])
def test_ask_model_without_time_left_does_not_take_the_usual_time(ai: FakeAI, ask: Ask, vendor: str) -> None:
    ai.fail_with("stalled")
    assert "did not answer within 0.001 seconds" in error_of(ask, vendor, timeout_s=0).message


def test_ask_model_leaves_the_model_when_it_is_cancelled(ai: FakeAI, ask: Ask) -> None:
    ai.fail_with("stalled")
    token = threading.Event()

    def work() -> PeekabooError:
        use_cancel_token(token)
        return error_of(ask, "openai")

    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(work)
        wait_for(lambda: ai.requests, "the model is asked")
        token.set()
        assert future.result(PATIENCE_S).code is ErrorCode.CANCELLED


@EVERY
def test_ask_model_reports_at_once_a_local_server_that_does_not_run(
    ai: FakeAI, environment: Env, vendor: str, pauses: list[float]
) -> None:
    base, place = base_variable(vendor), f"127.0.0.1:{ai.refused_port()}"
    environment(**{**ai.env(vendor, VENDORS[vendor]), base: f"http://{place}"})
    wrong = error_of(ask_model, OcrDesktop(), [an_image()], "What?", choice=choose_provider(vendor))
    assert f"did not answer: connection refused by {place}" in wrong.message
    assert base in wrong.hint and pauses == []


def test_ask_model_uses_a_proxy_but_not_for_this_machine(
    ai: FakeAI, ask: Ask, environment: Env, pauses: list[float]
) -> None:
    proxy = f"http://127.0.0.1:{ai.refused_port()}"
    environment(http_proxy=proxy, HTTP_PROXY=proxy)
    assert ask("ollama").text == "I see a 64x64 image/png"
    environment(PEEKABOO_OLLAMA_BASE_URL="http://ollama.invalid")
    wrong = error_of(ask_model, OcrDesktop(), [], "What?", choice=choose_provider("ollama"))
    assert "connection refused by ollama.invalid" in wrong.message  # the proxy refused
    assert len(pauses) == 3


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_BASE_URL", "ftp://127.0.0.1/v1"),
        ("OPENAI_BASE_URL", "http://user:secret@127.0.0.1:1/v1"),
        ("OPENAI_API_KEY", "sk-secret\nX: y"),
    ],
)
def test_ask_model_does_not_quote_what_cannot_be_sent(
    ai: FakeAI, environment: Env, name: str, value: str
) -> None:
    environment(**{**ai.env("openai", "gpt-4o"), name: value})
    wrong = error_of(ask_model, OcrDesktop(), [], "What?", choice=choose_provider())
    assert name in wrong.hint and value[:9] not in wrong.sentence() and "secret" not in wrong.sentence()
    assert "URL" not in name or wrong.message.endswith("the address is not a plain http or https URL")
    assert ai.requests == []


@EVERY
def test_ask_model_puts_neither_key_nor_pixels_into_log_error_or_repr(
    ai: FakeAI, ask: Ask, vendor: str
) -> None:
    image = an_image()
    pixels = base64.b64encode(image.data).decode()
    key = ai.keys.get(vendor) or "an-invented-key"
    with collected_debug_lines() as lines:
        answer = ask(vendor, images=[image])
        ai.fail_with("server_error", status=400, text=f"your key {key} sent {pixels}")
        wrong = error_of(ask, vendor, images=[image])
    for text in [*lines, repr(answer), repr(wrong), wrong.sentence(), wrong.details, repr(settings())]:
        assert (key not in text or vendor == "ollama") and pixels[:64] not in text
    assert any(f"{vendor}/{VENDORS[vendor]} answered in" in line and "64x64 png" in line for line in lines)


# analyze


def test_analyze_by_ocr_reads_the_text_without_a_key_or_a_network(environment: Env, tmp_path: Path) -> None:
    environment(PEEKABOO_AI_PROVIDERS="ocr")
    path = save(tmp_path, "shot.png", picture())
    result = analyze_file(OcrDesktop(("Hello", "", "w\u202eorld", "x" * 1001)), path, "Read the text.")
    assert (result.text, result.data["model_used"]) == ("Hello\nw orld\n" + "x" * 1000, "ocr/local")
    assert analyze_file(OcrDesktop(), path, "").text == "No text was found in this image."
    assert ask_model(OcrDesktop(("A",)), [an_image()] * 2, "", choice=choose_model("ocr")).text == "A\nA"


@pytest.mark.parametrize(("count", "schema"), [(0, None), (1, SCHEMA)])
def test_ocr_answers_no_other_question(count: int, schema: Any) -> None:
    images, choice = [an_image()] * count, choose_model("ocr")
    wrong = error_of(ask_model, OcrDesktop(), images, "Draw.", choice=choice, schema=schema)
    assert wrong.code is ErrorCode.INVALID_ARGUMENT


def test_analyze_asks_the_requested_model_about_the_files_content(
    ai: FakeAI, environment: Env, tmp_path: Path
) -> None:
    environment(**{**ai.env("openai", "x"), "PEEKABOO_AI_PROVIDERS": "ollama/llava:latest,openai/gpt-4o"})
    environment(HOME=str(tmp_path))
    save(tmp_path, "shot.PNG", picture("jpeg"))
    result = analyze_file(OcrDesktop(), "~/shot.PNG", " \n", "openai", "gpt-5.5")
    assert result.text == result.data["analysis_text"] == "I see a 64x48 image/jpeg"
    tokens = {"tokens_in": 1200, "tokens_out": 34}
    assert result.data.items() >= {"model_used": "openai/gpt-5.5", **tokens}.items()
    assert ai.questions[-1].prompt == "Please describe what you see in this image."
    assert ai.questions[-1].images[0].declared_type == "image/jpeg"


UNSUPPORTED = "Unsupported image format: .gif. Supported formats: .png, .jpg, .jpeg, .webp"


@pytest.mark.parametrize(
    ("providers", "name", "provider", "code", "message"),
    [
        ("", "a.gif", None, "INVALID_ARGUMENT", UNSUPPORTED),
        ("", "/nowhere/a.png", None, "AI_NOT_CONFIGURED", NOT_CONFIGURED),
        ("ocr", "/nowhere/a.png", "gemini", "AI_NOT_CONFIGURED", NOT_ENABLED),
        ("grok/4", "/nowhere/a.png", "grok", "INVALID_ARGUMENT", NO_GROK),
        ("ocr", "/nowhere/a.png", None, "FILE_IO_ERROR", "/nowhere/a.png: No such file or directory"),
    ],
)
def test_analyze_checks_name_configuration_and_file_in_this_order(
    environment: Env, providers: str, name: str, provider: Optional[str], code: str, message: str
) -> None:
    environment(PEEKABOO_AI_PROVIDERS=providers)
    wrong = error_of(analyze_file, OcrDesktop(), name, "What?", provider)
    assert (wrong.code.value, wrong.message) == (code, message)


def test_analyze_does_not_send_an_unsuitable_file(ai: FakeAI, environment: Env, tmp_path: Path) -> None:
    environment(**ai.env("openai", "gpt-4o"))
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    png = picture("png")
    for number, data in enumerate((b"root:x:0:0", b"", png[:20], png[:-20], picture("gif"))):
        save(tmp_path, f"{number}.png", data)
    for path in sorted(tmp_path.glob("*.png")):
        wrong = error_of(analyze_file, OcrDesktop(), str(path), "What?")
        message = f"{path} is not a complete image that models accept"
        assert (wrong.code, wrong.message) == (ErrorCode.INVALID_ARGUMENT, message)
        assert "at most 64 MB and 200 megapixels" in wrong.hint
    assert ai.requests == []


def test_analyze_takes_files_up_to_the_limits(tmp_path: Path) -> None:
    rest = len(picture(padding=9)) - 9
    images = [picture(padding=2**26 - rest), picture(padding=2**26 - rest + 1)]
    images += [picture("webp", 16000, 12500), picture("webp", 16000, 12501)]
    paths = [Path(save(tmp_path, f"{number}.png", data)) for number, data in enumerate(images)]
    for large, too_large in (paths[:2], paths[2:]):
        assert load_image(large).info.width > 0
        assert error_of(load_image, too_large).code is ErrorCode.INVALID_ARGUMENT
