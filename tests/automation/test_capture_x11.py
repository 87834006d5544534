"""Screenshots by shell on X11: modes, names, kinds, folders, lifetimes; odd screens; what keeps us from
acting.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from in_process import InProcessProgram
from worlds import Form, Program, both_forms, clean_environment, need, program_words, wait_for, x_server

from peekaboo_min.core.models import ImageInfo
from peekaboo_min.system.images import read_image_info

HOME = "{home}"  # in a row: the test's own home, folder: a new one
BACKGROUND = "244,241,234"


@pytest.fixture
def peek(display: str, tmp_path: Path) -> Program:
    """The package on the session's display; the other tests prove that the single file is the same."""
    return InProcessProgram(clean_environment(tmp_path, DISPLAY=display))


@pytest.fixture(scope="module")
def book(display: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Form]:
    """A form that stays open for all tests here that only look at it."""
    folder = tmp_path_factory.mktemp("book")
    form = Form(display, folder / "report.jsonl", "Guest book")
    try:
        peek = InProcessProgram(clean_environment(folder, DISPLAY=display))
        form.window_id = window_of(peek, form)["window_id"]
        yield form
    finally:
        form.close()


@pytest.fixture
def book_id(book: Form) -> int:
    return book.window_id


def window_of(program: Program, form: Form, *words: str) -> dict[str, Any]:
    def find() -> list[dict[str, Any]]:
        return [one for one in program.data("windows", *words)["windows"] if one["title"] == form.title]

    return wait_for(find, f"{form.title} is listed")[0]


def saved(program: Program, *words: Any, **variables: str) -> list[dict[str, Any]]:
    return program.data("image", *words, **variables)["saved_files"]


def colour(path: Path, x: int, y: int) -> str:
    """One pixel, as ImageMagick decodes it."""
    need("convert")
    words = ["convert", str(path), "-depth", "8", "-crop", f"1x1+{x}+{y}", "+repage", "rgb:-"]
    return ",".join(map(str, subprocess.run(words, capture_output=True, check=True).stdout))


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# what is captured -------------------------------------------------------------------------------------------


def test_without_an_app_the_screen_is_captured(peek: Program, tmp_path: Path) -> None:
    (entry,) = saved(peek, "--path", tmp_path / "a.png")
    assert isinstance(entry.pop("windows"), list)
    assert entry == {
        "path": str(tmp_path / "a.png"),
        "item_label": "Display 1 / Main",
        "mime_type": "image/png",
        "image_width": 1280,
        "image_height": 800,
    }
    assert read_image_info(tmp_path / "a.png") == ImageInfo("png", 1280, 800)
    assert (
        saved(peek, "--mode", "screen", "--screen-index", 0, "--path", tmp_path / "b.png")[0]["image_width"]
        == 1280
    )


def test_an_apps_window_is_captured_with_its_coordinates(
    peek: Program, book: Form, book_id: int, tmp_path: Path
) -> None:
    (entry,) = saved(peek, "--app", "form", "--path", tmp_path / "a.png")
    bounds = window_of(peek, book)["bounds"]
    assert {**entry, "screenshot_id": 0} == {
        "path": str(tmp_path / "a.png"),
        "item_label": book.title,
        "mime_type": "image/png",
        "image_width": bounds["width"],
        "image_height": bounds["height"],
        "window_title": book.title,
        "window_id": book_id,
        "window_index": 0,
        "scale": 1.0,
        "screenshot_id": 0,
    }
    assert read_image_info(tmp_path / "a.png") == ImageInfo("png", bounds["width"], bounds["height"])
    ends = [(1, 1), (bounds["width"] - 2, bounds["height"] - 2)]
    assert [colour(tmp_path / "a.png", x, y) for x, y in ends] == [BACKGROUND] * 2


def test_of_several_windows_the_asked_one_or_all_are_captured(
    peek: Program, book: Form, book_id: int, open_form: Callable[..., Form], tmp_path: Path
) -> None:
    other = window_of(peek, open_form("Book", "+400+100"))["window_id"]
    chosen = {
        "frontmost": saved(peek, "--mode", "frontmost"),
        "first": saved(peek, "--app", "Form"),
        "exact title first": saved(peek, "--app", "Form", "--window-title", "bOOk"),
        "a part of a title": saved(peek, "--app", "Form", "--window-title", "GUEST"),
        "index": saved(peek, "--app", "Form", "--window-index", 1),
        "id": saved(peek, "--window-id", hex(book_id)),
        "multi": saved(peek, "--app", "Form", "--mode", "multi", "--path", tmp_path / "all" / "m.png"),
    }
    assert {name: [entry["window_id"] for entry in entries] for name, entries in chosen.items()} == {
        "frontmost": [other],
        "first": [other],
        "exact title first": [other],
        "a part of a title": [book_id],
        "index": [book_id],
        "id": [book_id],
        "multi": [other, book_id],
    }
    assert files_below(tmp_path / "all") == ["m_window0_Book.png", "m_window1_Guest_book.png"]
    assert peek.error("image", "--app", "Form", "--window-index", 2)["code"] == "WINDOW_NOT_FOUND"


@pytest.mark.parametrize("words", [["--window-index", "9"], ["--window-title", "letter"]])
def test_a_window_that_the_app_does_not_have_is_not_found(
    peek: Program, book_id: int, words: list[str]
) -> None:
    finished = peek.run("image", "--app", "Form", *words, "--json")
    assert (finished.code, finished.error["code"]) == (15, "WINDOW_NOT_FOUND")


def test_an_image_is_shrunk_to_what_was_asked_and_never_enlarged(
    peek: Program, book_id: int, tmp_path: Path
) -> None:
    (entry,) = saved(peek, "--app", "Form", "--max-dimension", 100, "--path", tmp_path / "a.png")
    assert max(entry["image_width"], entry["image_height"]) == 100
    assert read_image_info(tmp_path / "a.png") == ImageInfo(
        "png", entry["image_width"], entry["image_height"]
    )
    (entry,) = saved(peek, "--max-dimension", 9000)
    assert (entry["image_width"], entry["image_height"]) == (1280, 800)


# where it goes, and as what ---------------------------------------------------------------------------------

# the path, --format -> the file's kind, and the name that it gets (None: a made-up name in that folder)
PATHS: dict[str, tuple[str, Optional[str], str, str, Optional[str]]] = {
    "a png": ("a.png", None, "png", ".", "a.png"),
    "a jpg": ("a.jpg", None, "jpg", ".", "a.jpg"),
    "a jpeg, and the name wins": ("a.JPEG", "png", "jpg", ".", "a.JPEG"),
    "a png, and the name wins": ("a.png", "jpg", "png", ".", "a.png"),
    "new folders": ("new/er/a.png", None, "png", "new/er", "a.png"),
    "a folder that is there": ("there", None, "png", "there", None),
    "a folder of jpgs": ("there", "jpg", "jpg", "there", None),
    "a folder that is not there yet": ("shots", None, "png", "shots", None),
    "a folder with a dot": ("my.shots", None, "png", "my.shots", None),
    "a folder that is named like a picture": ("album.png", None, "png", "album.png", None),
    "a slash at the end": ("fresh.png/", None, "png", "fresh.png", None),
    "from the home": ("~/a.png", None, "png", "home", "a.png"),
    "a folder in the home": ("~/shots", None, "png", "home/shots", None),
    "beside the working folder": ("../" * 20 + "{root}/a.png", None, "png", ".", "a.png"),
    "text beyond ASCII": ("Grüße 日本/bild.png", None, "png", "Grüße 日本", "bild.png"),
    "a name of 255 bytes": ("x" * 251 + ".png", None, "png", ".", "x" * 251 + ".png"),
}


@pytest.mark.parametrize("row", PATHS.values(), ids=PATHS.keys())
def test_a_path_is_read_by_its_rules_and_the_bytes_are_what_the_name_says(
    peek: Program, tmp_path: Path, row: tuple[str, Optional[str], str, str, Optional[str]]
) -> None:
    path, kind, made, folder, name = row
    for one in ("there", "album.png"):
        (tmp_path / one).mkdir()
    path = path.replace("{root}", str(tmp_path).lstrip("/"))
    asked = path if path.startswith("~") or path.startswith("..") else f"{tmp_path}/{path}"
    (entry,) = saved(peek, "--path", asked, *(["--format", kind] if kind else []))
    result = Path(os.path.normpath(entry["path"]))
    assert result.parent == tmp_path / folder
    assert name is None or result.name == name
    assert name is not None or result.suffix == f".{made}"
    info = read_image_info(result)
    assert info is not None and (info.kind, entry["mime_type"]) == (made, info.mime_type)


def test_the_environments_folder_takes_what_has_no_path(peek: Program, tmp_path: Path) -> None:
    (entry,) = saved(peek, PEEKABOO_DEFAULT_SAVE_PATH=str(tmp_path / "kept"))
    assert Path(entry["path"]).parent == tmp_path / "kept"
    (entry,) = saved(
        peek, "--path", tmp_path / "asked.png", PEEKABOO_DEFAULT_SAVE_PATH=str(tmp_path / "kept")
    )
    assert entry["path"] == str(tmp_path / "asked.png")


def test_an_image_may_be_replaced_and_one_spoilt_target_keeps_all_from_being_written(
    peek: Program, book_id: int, open_form: Callable[..., Form], tmp_path: Path
) -> None:
    window_of(peek, open_form("Other", "+300+100"))
    words = ["--app", "Form", "--mode", "multi", "--path", tmp_path / "all" / "m.png"]
    saved(peek, *words)
    saved(peek, *words)
    second = tmp_path / "all" / "m_window1_Guest_book.png"
    second.write_text("my notes")
    (tmp_path / "all" / "m_window0_Other.png").unlink()
    finished = peek.run("image", *words, "--json")
    assert (finished.code, finished.error["code"]) == (17, "FILE_IO_ERROR")
    assert (files_below(tmp_path / "all"), second.read_text()) == ([second.name], "my notes")


def test_two_captures_into_one_folder_at_once_do_not_meet(
    peek: Program, book_id: int, tmp_path: Path
) -> None:
    words = [["--app", "Form"], ["--app", "Form", "--path", str(tmp_path / "there")]] * 3
    with ThreadPoolExecutor(6) as pool:
        entries = [one for found in pool.map(lambda more: saved(peek, *more), words) for one in found]
    paths = {Path(entry["path"]) for entry in entries}
    assert (len(paths), len({entry["screenshot_id"] for entry in entries})) == (6, 6)
    assert all(read_image_info(path) for path in paths)


# our folder -------------------------------------------------------------------------------------------------


def our_folder(tmp_path: Path) -> Path:
    return tmp_path / "tmp" / f"peekaboo_min-{os.getuid()}"


def test_what_we_keep_is_for_its_owner_only(peek: Program, book_id: int, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        saved(peek, "--app", "Form")
        peek.data("press", book_id, "escape")
    finally:
        os.umask(old)
    assert stat.S_IMODE(our_folder(tmp_path).stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / "peekaboo_min").stat().st_mode) == 0o700
    kept = [path for folder in ("tmp", "state") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert {path.name.split(".")[-1] for path in kept} >= {"png", "json", "jsonl"}
    assert {
        path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in kept if path.stat().st_mode & 0o77
    } == {}


def grow_old(folder: Path, seconds: float) -> None:
    then = time.time() - seconds
    for path in folder.iterdir():
        os.utime(path, (then, then))


def test_an_image_lives_its_time_and_a_given_path_for_ever(
    peek: Program, book_id: int, tmp_path: Path
) -> None:
    saved(peek, "--app", "Form")
    saved(peek, "--path", tmp_path / "mine.png")
    os.utime(tmp_path / "mine.png", (0, 0))
    folder = our_folder(tmp_path)
    old = files_below(folder)
    assert len(old) == 2
    for age, kept_s, is_kept in [(500, "", True), (500, "0", True), (700, "800", True), (700, "", False)]:
        grow_old(folder, age)
        saved(peek, "--app", "Form", PEEKABOO_TTL_SECONDS=kept_s)
        assert set(old) <= set(files_below(folder)) if is_kept else not {*old} & {*files_below(folder)}
    assert (tmp_path / "mine.png").exists()


# odd windows and screens ------------------------------------------------------------------------------------


def test_a_minimised_window_is_refused_and_comes_back_by_focus(
    peek: Program, form: Form, tmp_path: Path
) -> None:
    window_id = window_of(peek, form)["window_id"]
    form.xdotool("windowminimize", "--sync", str(window_id))
    finished = wait_for(
        lambda: (lambda one: one if one.code else None)(peek.run("screenshot", window_id, "--json")),
        "it is refused",
    )
    assert (finished.code, finished.error["code"]) == (14, "CAPTURE_FAILED")
    assert "focus it first" in finished.error["message"]
    listed = wait_for(
        lambda: (lambda one: one if one["is_minimised"] else None)(window_of(peek, form)), "it is minimised"
    )
    assert listed["is_on_screen"] is False
    # another test's form may be closing at this moment
    shown = [one["window_title"] for one in peek.data("list", "windows", "--app", "Form")["windows"]]
    assert form.title not in shown
    peek.data("focus", window_id)

    def is_painted() -> bool:
        """Once the application has drawn the window again."""
        shot = peek.data("screenshot", window_id, "--path", tmp_path / "back.png")
        assert shot["image_width"] == shot["bounds"]["width"]
        return colour(tmp_path / "back.png", 2, 2) == BACKGROUND

    wait_for(is_painted, "the window is there again")


def test_a_window_partly_off_the_screen_is_captured_whole_and_clicked_only_where_it_can_be(
    peek: Program, form: Form, tmp_path: Path
) -> None:
    window = window_of(peek, form)
    window_id, bounds = window["window_id"], window["bounds"]
    form.xdotool("windowmove", str(window_id), "-150", "-100")
    wait_for(lambda: window_of(peek, form)["bounds"]["x"] < 0, "it has moved")
    shot = peek.data("screenshot", window_id, "--path", tmp_path / "a.png")
    assert (shot["image_width"], shot["image_height"]) == (bounds["width"], bounds["height"])
    ends = [(1, 1), (bounds["width"] - 2, bounds["height"] - 2)]
    assert [colour(tmp_path / "a.png", x, y) for x, y in ends] == [BACKGROUND] * 2
    for words in (("click", window_id, 2, 2), ("drag", window_id, *form.centre("agree"), 2, 2)):
        assert "outside the screen" in peek.error(*words)["message"]
    assert form.events("click") == []
    peek.data("click", window_id, *form.centre("agree"))
    assert form.wait_for_event("toggle")["value"] == 1


TITLES = {
    "a line of a listing": 'Evil": ()  9x9+0+0  +0+0\n     0x1234567 "Fake": ("fake" "Fake")  500x400+10+10',
    "lines of the properties": 'Evil"\n_NET_WM_PID(CARDINAL) = 1\nWM_CLASS(STRING) = "fake", "Fake"',
    "quotes and backslashes": 'a "quoted" \\ and \\" title \\n',
    "controls and directions": "a\tb\u202ec\u200bd",
    "beyond ASCII": "日本語 😀 Zoë",
}


@pytest.mark.parametrize("title", TITLES.values(), ids=TITLES.keys())
def test_a_title_fakes_nothing_in_the_listing(display: str, tmp_path: Path, title: str) -> None:
    peek = InProcessProgram(clean_environment(tmp_path, DISPLAY=display))
    form = Form(display, tmp_path / "report.jsonl", title, "+60+60")
    try:
        all_of_them: list[dict[str, Any]] = []

        def find() -> list[dict[str, Any]]:
            all_of_them[:] = peek.data("windows", "--all")["windows"]
            return [
                one
                for one in all_of_them
                if one["owner_name"] == "Form" and one["title"].startswith(title[0])
            ]

        found = wait_for(find, "the form is listed")
        assert {one["owner_name"] for one in all_of_them} <= {"Form", "", "openbox", "Openbox"}
        assert 0x1234567 not in {one["window_id"] for one in all_of_them}
        assert (len(found), found[0]["pid"], found[0]["is_on_screen"]) == (1, None, True)
        assert not set(found[0]["title"]) & set("\n\t\u202e\u200b")
        shot = peek.data("screenshot", found[0]["window_id"])
        assert (shot["image_width"], shot["image_height"]) == (
            found[0]["bounds"]["width"],
            found[0]["bounds"]["height"],
        )
        where = subprocess.run(
            ["xwininfo", "-id", str(found[0]["window_id"])], env=peek.environment, capture_output=True
        ).stdout.decode("utf-8", "replace")
        assert f"Absolute upper-left X:  {found[0]['bounds']['x']}" in where
    finally:
        form.close()


@pytest.fixture(scope="module")
def bare_display() -> Iterator[str]:
    with x_server(with_window_manager=False) as name:
        yield name


def test_an_empty_display_without_a_window_manager_lists_no_windows(
    bare_display: str, program: Program
) -> None:
    finished = program.run("windows", "--json", DISPLAY=bare_display)
    assert (finished.code, finished.json.get("data")) == (0, {"windows": []}), finished.out


@both_forms
def test_without_a_window_manager_all_of_it_works(
    bare_display: str, program: Program, tmp_path: Path
) -> None:
    peek = program.having(DISPLAY=bare_display)
    form = Form(bare_display, tmp_path / "report.jsonl", "Bare book", "+30+30")
    cover = Form(bare_display, tmp_path / "cover.jsonl", "Cover", "+200+60")
    try:
        window_id = window_of(peek, form)["window_id"]
        window_of(peek, cover)
        assert peek.data("focus", window_id)["is_focused"] is True
        assert peek.data("windows")["windows"][0]["window_id"] == window_id
        shot = peek.data("screenshot", window_id, "--path", tmp_path / "a.png")
        assert (colour(tmp_path / "a.png", 2, 2), shot["bounds"]["x"], shot["bounds"]["y"]) == (
            BACKGROUND,
            30,
            30,
        )
        peek.data("click", window_id, *form.centre("name"))
        peek.data("type", window_id, "Zoë")
        peek.data("press", window_id, "f12")
        assert form.wait_for_event("text")["name"] == "Zoë"
    finally:
        form.close()
        cover.close()


@contextmanager
def two_screens() -> Iterator[str]:
    """A server with two heads. Xvfb puts both at the origin, and has nothing to place them otherwise."""
    need("Xvfb")
    reader, writer = os.pipe()
    words = [
        "Xvfb",
        "-displayfd",
        str(writer),
        "-screen",
        "0",
        "800x600x24",
        "-screen",
        "1",
        "640x480x24",
        "+xinerama",
    ]
    server = subprocess.Popen(
        [*words, "-nolisten", "tcp", "-noreset"], pass_fds=[writer], stderr=subprocess.DEVNULL
    )
    os.close(writer)
    try:
        with os.fdopen(reader) as f:
            yield f":{f.readline().strip()}"
    finally:
        server.kill()
        server.wait()


def test_each_of_two_screens_is_listed_and_captured(tmp_path: Path) -> None:
    with two_screens() as name:
        peek = InProcessProgram(clean_environment(tmp_path, DISPLAY=name))
        screens = peek.data("list", "screens")["screens"]
        assert [(one["screen_index"], one["is_main"], one["bounds"]) for one in screens] == [
            (0, True, {"x": 0, "y": 0, "width": 800, "height": 600}),
            (1, False, {"x": 0, "y": 0, "width": 640, "height": 480}),
        ]
        both = saved(peek, "--path", tmp_path / "both" / "s.png")
        assert files_below(tmp_path / "both") == ["s_display0_main.png", "s_display1.png"]
        labels = [(one["item_label"], one["image_width"], one["image_height"]) for one in both]
        assert labels == [("Display 1 / Main", 800, 600), ("Display 2", 640, 480)]
        (second,) = saved(peek, "--screen-index", 1, "--path", tmp_path / "second.png")
        assert (second["item_label"], read_image_info(tmp_path / "second.png")) == (
            "Display 2",
            ImageInfo("png", 640, 480),
        )
        assert peek.error("image", "--screen-index", 2)["code"] == "INVALID_ARGUMENT"


# what keeps us from acting ----------------------------------------------------------------------------------

REFUSALS: dict[str, dict[str, str]] = {
    "read-only": {"PEEKABOO_READONLY": "1"},
    "a stop file": {"PEEKABOO_STOP_FILE": f"{HOME}/stop"},
    "a stop file that is a broken link": {"PEEKABOO_STOP_FILE": f"{HOME}/broken"},
    "a stop file from the home": {"PEEKABOO_STOP_FILE": "~/stop"},
    "a denied app": {"PEEKABOO_DENY_APPS": "Mail,form"},
    "denied apps by a pattern": {"PEEKABOO_DENY_APPS": "F?rm*"},
    "only other apps are allowed": {"PEEKABOO_ALLOW_APPS": "Mail,Notes"},
    "denied and allowed": {"PEEKABOO_ALLOW_APPS": "*", "PEEKABOO_DENY_APPS": "Form"},
}


@pytest.mark.parametrize("variables", REFUSALS.values(), ids=REFUSALS.keys())
def test_what_must_not_be_done_is_refused_and_nothing_reaches_the_window(
    peek: Program, book: Form, book_id: int, tmp_path: Path, variables: dict[str, str]
) -> None:
    home = tmp_path / "home"
    (home / "stop").write_text("")
    (home / "broken").symlink_to("nothing")
    variables = {name: value.replace(HOME, str(home)) for name, value in variables.items()}
    before = book.events()
    acts = [["click", book_id, 20, 20], ["type", book_id, "no"]]
    if variables in (REFUSALS["read-only"], REFUSALS["a denied app"]):
        peek.data("screenshot", book_id, **variables)  # looking is not acting
        acts += [
            ["focus", book_id],
            ["press", book_id, "a"],
            ["image", "--app", "Form", "--capture-focus", "foreground"],
        ]
    with ThreadPoolExecutor(2) as pool:
        finished = list(pool.map(lambda words: peek.run(*words, "--json", **variables), acts))
    assert [(one.code, one.error["code"]) for one in finished] == [(21, "POLICY_DENIED")] * len(acts)
    assert book.events() == before
    assert not (tmp_path / "state" / "peekaboo_min" / "audit.jsonl").exists()


def test_the_default_stop_file_is_in_the_state_folder(peek: Program, book_id: int, tmp_path: Path) -> None:
    (tmp_path / "state" / "peekaboo_min").mkdir(exist_ok=True)
    (tmp_path / "state" / "peekaboo_min" / "STOP").write_text("")
    assert "the stop file" in peek.error("focus", book_id)["message"]


def test_an_allowed_app_may_be_acted_on(peek: Program, book_id: int) -> None:
    assert peek.run("focus", book_id, PEEKABOO_ALLOW_APPS="Mail, FORM ").code == 0


def test_the_audit_log_says_what_was_done_and_where_and_never_what_was_typed(
    peek: Program, form: Form, tmp_path: Path
) -> None:
    window_id = window_of(peek, form)["window_id"]
    peek.data("screenshot", window_id)
    peek.data("click", window_id, *form.centre("name"))
    peek.data("type", window_id, "my secret Wörter")
    peek.data("press", window_id, "ctrl+a")
    text = (tmp_path / "state" / "peekaboo_min" / "audit.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    acts = [(one["action"], one["window_id"], one["app"]) for one in lines if one["action"] != "focus"]
    assert acts == [(action, window_id, "Form") for action in ("click", "type", "press")]
    assert all({"time", "pid"} <= set(one) for one in lines)
    assert [word for word in ("secret", "Wörter", "W\\u00f6rter") if word in text] == []
    everything = "".join(
        path.read_text(errors="replace") for path in (tmp_path / "state").rglob("*") if path.is_file()
    )
    assert "secret" not in everything


def test_an_act_that_cannot_be_noted_is_not_done(peek: Program, form: Form, tmp_path: Path) -> None:
    window_id = window_of(peek, form)["window_id"]
    (tmp_path / "state" / "peekaboo_min" / "audit.jsonl").mkdir(parents=True)
    finished = peek.run("press", window_id, "a", "--json")
    assert (finished.code, finished.error["code"]) == (17, "FILE_IO_ERROR")
    assert form.events("key") == []


def test_a_full_disk_is_a_file_error_where_the_effect_is_looked_at(peek: Program, form: Form) -> None:
    window_id = window_of(peek, form)["window_id"]
    full = Program(["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *peek.words], peek.environment)
    finished = full.run("press", window_id, "a", "--verify", "--json")
    assert (finished.code, finished.error["code"]) == (17, "FILE_IO_ERROR")
    assert form.events("key") == []


def test_a_lock_that_cannot_be_made_is_told_as_a_file_error(
    peek: Program, form: Form, tmp_path: Path
) -> None:
    window_id = window_of(peek, form)["window_id"]
    (tmp_path / "state" / "peekaboo_min" / f"input-x11-{peek.environment['DISPLAY'][1:]}.lock").mkdir(
        parents=True
    )
    finished = peek.run("press", window_id, "a", "--json")
    assert (finished.code, finished.error["code"]) == (17, "FILE_IO_ERROR")
    assert form.events("key") == []


def test_two_that_type_at_once_do_not_interleave(
    display: str, form: Form, open_form: Callable[..., Form], tmp_path: Path
) -> None:
    """The package types into one window, the single file into another: each must keep the focus while it
    types.
    """
    environment = clean_environment(tmp_path, DISPLAY=display)
    other = open_form("Other book", "+600+300")
    one, two = (Program(program_words(name), environment) for name in ("package", "single file"))
    first, second = window_of(one, form)["window_id"], window_of(one, other)["window_id"]
    jobs = [(one, first, "a" * 40), (two, second, "b" * 40), (two, first, "c" * 40)]
    with ThreadPoolExecutor(3) as pool:
        finished = list(pool.map(lambda job: job[0].run("type", job[1], job[2]), jobs))
    assert [one.code for one in finished] == [0] * 3, finished
    one.data("press", first, "f12")
    one.data("press", second, "f12")
    assert form.wait_for_event("text")["name"] in ("a" * 40 + "c" * 40, "c" * 40 + "a" * 40)
    assert other.wait_for_event("text")["name"] == "b" * 40
