"""Shell screenshots on X11: modes, file names, formats, folders, lifetimes, screens; policy and audit log."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from in_process import InProcessProgram
from tk_windows import FORM_COLOUR, audit, pixels_of, window_titled
from worlds import Finished, Form, Program, bare_x_server, clean_environment, wait_for

from peekaboo_min.core.models import ImageInfo
from peekaboo_min.system.bitmaps import read_image_info

GIF = b"GIF89a" + bytes([1, 0, 1, 0, 0, 0, 0]) + b";"


@pytest.fixture(scope="module")
def book(display: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Form]:
    """Yield a form that stays open for all tests of this file that do not change it."""
    with closing(Form(display, tmp_path_factory.mktemp("book") / "report.jsonl", "Guest book")) as form:
        yield form


@pytest.fixture
def book_id(peek: Program, book: Form) -> int:
    return window_titled(peek, book.title)["window_id"]


def saved(program: Program, *words: Any, **variables: str) -> list[dict[str, Any]]:
    return program.data("image", *words, **variables)["saved_files"]


def has_colour(path: Path, *places: tuple[float, float]) -> bool:
    """Return True if all these pixels have the form's colour."""
    return all(pixels_of(path, f"1x1+{x:g}+{y:g}") == FORM_COLOUR for x, y in places)


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_image_without_an_app_is_the_screen_at_its_size(peek: Program, tmp_path: Path) -> None:
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
    (entry,) = saved(peek, "--mode", "screen", "--screen-index", 0, "--max-dimension", 9000)
    assert (entry["image_width"], entry["image_height"]) == (1280, 800)


def test_image_of_an_app_has_its_coordinates(peek: Program, book: Form, book_id: int, tmp_path: Path) -> None:
    (entry,) = saved(peek, "--app", "form", "--path", tmp_path / "a.png")
    bounds = window_titled(peek, book.title)["bounds"]
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
    assert has_colour(tmp_path / "a.png", (1, 1), (bounds["width"] - 2, bounds["height"] - 2))


def test_image_of_several_windows_captures_the_requested(
    peek: Program, book: Form, book_id: int, open_form: Callable[..., Form], tmp_path: Path
) -> None:
    title = open_form("Book", "+400+100").title
    wait_for(lambda: window_titled(peek, title)["is_focused"], "the new window has the focus")
    other = window_titled(peek, title)["window_id"]
    form = ["--app", "Form"]
    multi = [*form, "--mode", "multi", "--path", str(tmp_path / "all" / "m.png")]
    for argv, expected in (
        (["--mode", "frontmost"], [other]),
        (form, [other]),
        ([*form, "--window-title", "bOOk"], [other]),  # an exact title first
        ([*form, "--window-title", "GUEST"], [book_id]),
        ([*form, "--window-index", "1"], [book_id]),
        (["--window-id", hex(book_id)], [book_id]),
        (multi, [other, book_id]),
    ):
        assert [entry["window_id"] for entry in saved(peek, *argv)] == expected, argv
    assert files_below(tmp_path / "all") == ["m_window0_Book.png", "m_window1_Guest_book.png"]
    for argv in (["--window-index", "2"], ["--window-title", "letter"]):
        finished = peek.run("image", *form, *argv, "--json")
        assert (finished.code, finished.error["code"]) == (15, "WINDOW_NOT_FOUND"), argv


# path, --format, expected format, folder and file name (None: a generated name in that folder)
PATHS: dict[str, tuple[str, Optional[str], str, str, Optional[str]]] = {
    "a png": ("a.png", None, "png", ".", "a.png"),
    "a jpg": ("a.jpg", None, "jpg", ".", "a.jpg"),
    "a jpeg, and the name wins": ("a.JPEG", "png", "jpg", ".", "a.JPEG"),
    "a png, and the name wins": ("a.png", "jpg", "png", ".", "a.png"),
    "new folders": ("new/er/a.png", None, "png", "new/er", "a.png"),
    "an existing folder": ("there", None, "png", "there", None),
    "a folder of jpgs": ("there", "jpg", "jpg", "there", None),
    "a new folder": ("shots", None, "png", "shots", None),
    "a folder with a dot": ("my.shots", None, "png", "my.shots", None),
    "a folder named like an image": ("album.png", None, "png", "album.png", None),
    "a slash at the end": ("fresh.png/", None, "png", "fresh.png", None),
    "in the home folder": ("~/a.png", None, "png", "home", "a.png"),
    "beside the working folder": ("../" * 20 + "{root}/a.png", None, "png", ".", "a.png"),
    "text beyond ASCII": ("Grüße 日本/bild.png", None, "png", "Grüße 日本", "bild.png"),
    "a name of 255 bytes": ("x" * 251 + ".png", None, "png", ".", "x" * 251 + ".png"),
}


@pytest.mark.parametrize(("path", "kind", "made", "folder", "name"), PATHS.values(), ids=PATHS.keys())
def test_path_decides_folder_name_and_kind(
    peek: Program, tmp_path: Path, path: str, kind: Optional[str], made: str, folder: str, name: Optional[str]
) -> None:
    for directory in ("there", "album.png"):
        (tmp_path / directory).mkdir()
    path = path.replace("{root}", str(tmp_path).lstrip("/"))
    asked = path if path.startswith(("~", "..")) else f"{tmp_path}/{path}"
    finished = peek.run("image", "--path", asked, *(["--format", kind] if kind else []), "--json")
    (entry,) = finished.data["saved_files"]
    has_note = any("by the path's extension, not" in message for message in finished.json["messages"])
    assert has_note == (kind not in (None, made))
    result = Path(os.path.normpath(entry["path"]))
    assert result.parent == tmp_path / folder
    assert result.name == name if name else result.suffix == f".{made}"
    info = read_image_info(result)
    assert info is not None and (info.kind, entry["mime_type"]) == (made, info.mime_type)


def test_default_path_comes_from_the_environment(peek: Program, tmp_path: Path) -> None:
    variables = {"PEEKABOO_DEFAULT_SAVE_PATH": str(tmp_path / "kept")}
    assert Path(saved(peek, **variables)[0]["path"]).parent == tmp_path / "kept"
    (entry,) = saved(peek, "--path", tmp_path / "asked.png", **variables)
    assert entry["path"] == str(tmp_path / "asked.png")


def test_multi_does_not_overwrite_a_file_of_the_user(
    peek: Program, book_id: int, open_form: Callable[..., Form], tmp_path: Path
) -> None:
    window_titled(peek, open_form("Other", "+300+100").title)
    words = ["--app", "Form", "--mode", "multi", "--path", tmp_path / "all" / "m.png"]
    saved(peek, *words)
    saved(peek, *words)
    second = tmp_path / "all" / "m_window1_Guest_book.png"
    second.write_text("my notes")
    (tmp_path / "all" / "m_window0_Other.png").unlink()
    finished = peek.run("image", *words, "--json")
    assert (finished.code, finished.error["code"]) == (17, "FILE_IO_ERROR")
    assert (files_below(tmp_path / "all"), second.read_text()) == ([second.name], "my notes")
    error = peek.error("screenshot", book_id, "--path", tmp_path)
    assert (error["code"], "is a folder" in error["message"]) == ("FILE_IO_ERROR", True)


def test_parallel_images_get_different_files_and_ids(peek: Program, book_id: int, tmp_path: Path) -> None:
    words = [["--app", "Form"], ["--app", "Form", "--path", str(tmp_path / "there")]] * 3
    with ThreadPoolExecutor(6) as pool:
        entries = [one for found in pool.map(lambda more: saved(peek, *more), words) for one in found]
    paths = {Path(entry["path"]) for entry in entries}
    assert (len(paths), len({entry["screenshot_id"] for entry in entries})) == (6, 6)
    assert all(read_image_info(path) for path in paths)


def our_folder(tmp_path: Path) -> Path:
    return tmp_path / "tmp" / f"peekaboo_min-{os.getuid()}"


def test_kept_files_are_private_to_their_owner(peek: Program, book_id: int, tmp_path: Path) -> None:
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
    assert [path.name for path in kept if path.stat().st_mode & 0o77] == []


@pytest.fixture(params=["image --app Form", "screenshot"])
def save_at(
    request: pytest.FixtureRequest, peek: Program, book_id: int
) -> Iterator[Callable[[Path], Finished]]:
    """Yield a function that saves an image at a path with umask 027, for each of the two commands."""
    words = request.param.split()
    old = os.umask(0o027)
    yield lambda path: peek.run(*words, *([book_id] * (len(words) == 1)), "--path", path, "--json")
    os.umask(old)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_new_file_follows_the_umask_except_in_a_shared_folder(
    save_at: Callable[[Path], Finished], tmp_path: Path
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    for folder, expected in ((tmp_path, 0o640), (tmp_path / "shared", 0o600)):
        assert save_at(folder / "new.png").code == 0
        assert mode(folder / "new.png") == expected


def test_existing_file_or_own_link_keeps_its_mode(
    save_at: Callable[[Path], Finished], tmp_path: Path
) -> None:
    folder, image, link = tmp_path / "folder", tmp_path / "folder" / "old.png", tmp_path / "link.png"
    folder.mkdir()
    image.write_bytes(GIF)
    image.chmod(0o664)
    (tmp_path / "between").symlink_to("folder/old.png")
    link.symlink_to(tmp_path / "between")
    for path in (image, link):
        image.write_bytes(GIF)
        assert save_at(path).code == 0
        info = read_image_info(image)
        assert (info and info.kind, mode(image), link.is_symlink()) == ("png", 0o664, True)


LINKS: dict[str, Callable[[Path], object]] = {
    "to no image": lambda folder: (folder / "target").write_text("my notes"),
    "to an empty file": lambda folder: (folder / "target").touch(),
    "to nothing": lambda folder: None,
    "to itself": lambda folder: (folder / "target").symlink_to("link.png"),
    "of another user": lambda folder: os.chown(folder / "link.png", 12345, -1, follow_symlinks=False),
    "by another user's": lambda folder: (
        (folder / "target").symlink_to("image"),
        os.chown(folder / "target", 12345, -1, follow_symlinks=False),
    ),
}


@pytest.mark.parametrize("kind", LINKS)
def test_path_of_an_unsafe_link_is_refused(peek: Program, tmp_path: Path, kind: str) -> None:
    if "user" in kind and os.getuid():
        pytest.skip("only root can give a link away")
    for name in ("image", *(["target"] if kind == "of another user" else [])):
        (tmp_path / name).write_bytes(GIF)
    (tmp_path / "link.png").symlink_to("target")
    LINKS[kind](tmp_path)
    before = {path.name: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}
    error = peek.error("image", "--path", tmp_path / "link.png")
    assert (error["code"], "link.png" in error["message"]) == ("FILE_IO_ERROR", True)
    assert {path.name: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()} == before


def grow_old(folder: Path, seconds: float) -> None:
    then = time.time() - seconds
    for path in folder.iterdir():
        os.utime(path, (then, then))


def test_ttl_deletes_an_image_without_a_path_only(peek: Program, book_id: int, tmp_path: Path) -> None:
    mine, folder = tmp_path / "mine.png", our_folder(tmp_path)

    def capture(**variables: str) -> None:  # also deletes expired images
        saved(peek, "--path", mine, **variables)
        os.utime(mine, (0, 0))

    saved(peek, "--app", "Form")
    capture()
    grow_old(folder, 500)
    capture()
    grow_old(folder, 700)
    capture(PEEKABOO_TTL_SECONDS="0")
    capture(PEEKABOO_TTL_SECONDS="800")
    assert len(files_below(folder)) == 2
    capture()
    assert (files_below(folder), mine.exists()) == ([], True)


def test_screenshot_of_a_minimised_window_is_refused(
    peek: Program, form: Form, form_id: int, tmp_path: Path
) -> None:
    form.xdotool("windowminimize", "--sync", str(form_id))
    wait_for(lambda: window_titled(peek, form.title)["is_minimised"], "it is minimised")
    finished = peek.run("screenshot", form_id, "--json")
    assert (finished.code, finished.error["code"]) == (14, "CAPTURE_FAILED")
    assert "focus it first" in finished.error["message"]
    assert window_titled(peek, form.title)["is_on_screen"] is False
    # another test's form may be closing at this moment
    shown = [one["window_title"] for one in peek.data("list", "windows", "--app", "Form")["windows"]]
    assert form.title not in shown
    peek.data("focus", form_id)
    assert peek.data("screenshot", form_id)["window_id"] == form_id


def test_window_partly_off_the_screen_is_captured_whole(peek: Program, form: Form, tmp_path: Path) -> None:
    window = window_titled(peek, form.title)
    window_id, bounds = window["window_id"], window["bounds"]
    form.xdotool("windowmove", str(window_id), "-150", "-100")
    wait_for(lambda: window_titled(peek, form.title)["bounds"]["x"] < 0, "it has moved")
    shot = peek.data("screenshot", window_id, "--path", tmp_path / "a.png")
    assert (shot["image_width"], shot["image_height"]) == (bounds["width"], bounds["height"])
    assert has_colour(tmp_path / "a.png", (1, 1), (bounds["width"] - 2, bounds["height"] - 2))
    for words in (("click", window_id, 2, 2), ("drag", window_id, *form.centre("agree"), 2, 2)):
        assert "outside the screen" in peek.error(*words)["message"]
    assert form.events("click") == []
    peek.data("click", window_id, *form.centre("agree"))
    assert form.wait_for_event("toggle")["value"] == 1


TITLES = {
    "a line of a listing": 'Evil": ()  9x9+0+0  +0+0\n     0x1234567 "Fake": ("fake" "Fake")  500x400+10+10',
    "quotes and backslashes": 'a "quoted" \\ and \\" title \\n $(touch x) `id`',
    "controls and directions": "a\tb\u202ec\u200bd",
    "beyond ASCII": "日本語 😀 Zoë",
}


@pytest.mark.parametrize("title", TITLES.values(), ids=TITLES.keys())
def test_title_cannot_fake_a_window(peek: Program, open_form: Callable[..., Form], title: str) -> None:
    open_form(title)
    listed: list[dict[str, Any]] = []

    def find() -> list[dict[str, Any]]:
        listed[:] = peek.data("windows", "--all")["windows"]
        return [one for one in listed if one["owner_name"] == "Form" and one["title"].startswith(title[0])]

    (found,) = wait_for(find, "the form is listed")
    assert {one["owner_name"] for one in listed} <= {"Form", "", "openbox", "Openbox"}
    assert 0x1234567 not in {one["window_id"] for one in listed}
    assert (found["pid"], found["is_on_screen"]) == (None, True)
    assert not set(found["title"]) & set("\n\t\u202e\u200b")
    shot, bounds = peek.data("screenshot", found["window_id"]), found["bounds"]
    assert (shot["image_width"], shot["image_height"]) == (bounds["width"], bounds["height"])
    argv = ["xwininfo", "-id", str(found["window_id"])]
    where = subprocess.run(argv, env=peek.environment, capture_output=True).stdout.decode("utf-8", "replace")
    assert f"Absolute upper-left X:  {bounds['x']}" in where


def test_window_manager_is_not_needed(program: Program, tmp_path: Path) -> None:
    with bare_x_server(compositor=True) as display:
        peek = program.having(DISPLAY=display)
        assert peek.data("windows") == {"windows": []}
        bare = Form(display, tmp_path / "report.jsonl", "Bare book", "+30+30")
        with closing(bare) as form, closing(Form(display, tmp_path / "cover.jsonl", "Cover", "+200+60")):
            window_id = window_titled(peek, form.title)["window_id"]
            window_titled(peek, "Cover")
            assert peek.data("focus", window_id)["is_focused"] is True
            assert peek.data("windows")["windows"][0]["window_id"] == window_id
            shot = peek.data("screenshot", window_id, "--path", tmp_path / "a.png")
            assert has_colour(tmp_path / "a.png", (2, 2))
            assert (shot["bounds"]["x"], shot["bounds"]["y"]) == (30, 30)
            peek.data("click", window_id, *form.centre("name"))
            peek.data("type", window_id, "Zoë")
            peek.data("press", window_id, "f12")
            assert form.wait_for_event("text")["name"] == "Zoë"


def test_each_screen_is_listed_and_captured(tmp_path: Path) -> None:
    # Xvfb puts both at the origin and cannot place them elsewhere
    second_screen = ("-screen", "1", "640x480x24", "+xinerama")
    with bare_x_server("800x600x24", second_screen) as name:
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
        info = read_image_info(tmp_path / "second.png")
        assert (second["item_label"], info) == ("Display 2", ImageInfo("png", 640, 480))
        assert peek.error("image", "--screen-index", 2)["code"] == "INVALID_ARGUMENT"


REFUSALS: dict[str, dict[str, str]] = {
    "read-only": {"PEEKABOO_READONLY": "1"},
    "a stop file": {"PEEKABOO_STOP_FILE": "HOME/stop"},
    "a stop file that is a broken link": {"PEEKABOO_STOP_FILE": "HOME/broken"},
    "a stop file in the home folder": {"PEEKABOO_STOP_FILE": "~/stop"},
    "a denied app": {"PEEKABOO_DENY_APPS": "Mail,f?rm*"},
    "only other apps are allowed": {"PEEKABOO_ALLOW_APPS": "Mail,Notes"},
    "denied and allowed": {"PEEKABOO_ALLOW_APPS": "*", "PEEKABOO_DENY_APPS": "Form"},
}


@pytest.mark.parametrize("variables", REFUSALS.values(), ids=REFUSALS.keys())
def test_act_that_the_policy_forbids_does_not_arrive(
    peek: Program, book: Form, book_id: int, tmp_path: Path, variables: dict[str, str]
) -> None:
    home = tmp_path / "home"
    (home / "stop").write_text("")
    (home / "broken").symlink_to("nothing")
    variables = {name: value.replace("HOME", str(home)) for name, value in variables.items()}
    before = book.events()
    acts = [["click", book_id, 20, 20], ["type", book_id, "no"]]
    if variables in (REFUSALS["read-only"], REFUSALS["a denied app"]):
        peek.data("screenshot", book_id, **variables)  # reading is allowed
        foreground = ["image", "--app", "Form", "--capture-focus", "foreground"]
        acts += [["focus", book_id], ["press", book_id, "a"], foreground]
    finished = [peek.run(*words, "--json", **variables) for words in acts]
    assert [(one.code, one.error["code"]) for one in finished] == [(21, "POLICY_DENIED")] * len(acts)
    assert book.events() == before
    assert not (tmp_path / "state" / "peekaboo_min" / "audit.jsonl").exists()


def test_stop_refuses_acts_until_resume(peek: Program, book_id: int, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("nothing")
    for variables in (
        {},
        {"PEEKABOO_STOP_FILE": str(tmp_path / "new" / "stop")},
        {"PEEKABOO_STOP_FILE": str(link)},
    ):
        peek.data("stop", **variables)
        assert "peekaboo-min resume" in peek.error("focus", book_id, **variables)["message"]
        peek.data("screenshot", book_id, **variables)
        for _ in range(2):
            peek.data("resume", **variables)
        assert peek.run("focus", book_id, PEEKABOO_ALLOW_APPS="Mail, FORM ", **variables).code == 0


def test_audit_log_lists_acts_without_the_typed_text(
    peek: Program, form: Form, form_id: int, tmp_path: Path
) -> None:
    peek.data("screenshot", form_id)
    peek.data("click", form_id, *form.centre("name"))
    peek.data("type", form_id, "my secret Wörter")
    peek.data("press", form_id, "ctrl+a")
    lines = audit(peek)
    acts = [(one["action"], one["window_id"], one["app"]) for one in lines if one["action"] != "focus"]
    assert acts == [(action, form_id, "Form") for action in ("click", "type", "press")]
    assert all({"time", "pid"} <= set(one) for one in lines)
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    kept = "".join(path.read_text("utf-8", "replace") for path in files)
    assert [word for word in ("secret", "Wörter", "W\\u00f6rter") if word in kept] == []


# a folder in place of the log file, or no space for the --verify images
@pytest.mark.parametrize("problem", ["audit.jsonl", "full disk"])
def test_act_that_cannot_write_its_files_is_refused(
    peek: Program, form: Form, form_id: int, tmp_path: Path, problem: str
) -> None:
    program, argv = peek, ["press", form_id, "a", "--json"]
    if problem == "full disk":
        program = Program(["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *peek.words], peek.environment)
        argv.append("--verify")
    else:
        (tmp_path / "state" / "peekaboo_min" / problem).mkdir(parents=True)
    finished = program.run(*argv)
    assert (finished.code, finished.error["code"]) == (17, "FILE_IO_ERROR")
    assert form.events("key") == []
