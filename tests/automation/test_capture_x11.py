"""Shell screenshots on X11: failures, files, modes, links, lifetimes, windows off the screen, screens."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Callable

import pytest
from in_process import InProcessProgram
from tk_windows import FORM_COLOUR, pixels_of, programs_by, typed, window_titled
from worlds import Form, OpenForm, Program, bare_x_server, clean_environment, wait_for

from peekaboo_min.core.models import ImageInfo
from peekaboo_min.system.image_files import whole_image

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


def test_image_of_an_app_shows_its_window(peek: Program, book: Form, book_id: int, tmp_path: Path) -> None:
    book.xdotool("mousemove", "--window", str(book_id), "5", "5")  # the cursor is not part of the image
    (entry,) = saved(peek, "--app", "form", "--path", tmp_path / "a.png", "--max-dimension", 9000)
    bounds = window_titled(peek, book.title)["bounds"]
    assert (entry["window_id"], entry["window_title"]) == (book_id, book.title)
    width, height = bounds["width"], bounds["height"]
    assert whole_image((tmp_path / "a.png").read_bytes()) == ImageInfo("png", width, height)
    assert pixels_of(tmp_path / "a.png", "8x8+1+1") == FORM_COLOUR * 64
    assert has_colour(tmp_path / "a.png", (width - 2, height - 2))


@pytest.mark.parametrize(
    ("script", "message", "details"),
    [
        ("exit 0", "maim produced no image", ""),
        ('echo no pixels >&2; $real "$@"; exit 1', "maim produced no image", "no pixels"),
        ('$real "$@" | head -c 300; exit 0', "wrote no whole image", ""),
    ],
)
def test_image_that_maim_does_not_complete_is_an_error(
    peek: Program, tmp_path: Path, script: str, message: str, details: str
) -> None:
    error = peek.error("image", "--path", tmp_path / "a.png", **programs_by(tmp_path / "bin", script, "maim"))
    assert (error["code"], message in error["message"]) == ("CAPTURE_FAILED", True)
    assert (error["details"], (tmp_path / "a.png").exists()) == (details, False)


# the first line for xdotool -> a window manager that does not answer, or that does not raise a focused window
ACTIVATIONS = {
    "hangs": "case $line in windowactivate*) exec sleep 60 ;; esac",
    "does not raise": 'line=$(echo "$line" | sed s/windowactivate/windowfocus/)',
}


@pytest.mark.parametrize("script", ACTIVATIONS.values(), ids=ACTIVATIONS.keys())
def test_window_is_raised_and_focused(
    peek: Program, form_id: int, open_form: OpenForm, tmp_path: Path, script: str
) -> None:
    window_titled(peek, open_form("Cover", "+70+70").title)
    going_on = '{ echo "$line"; cat; } | $real -; exit'
    xdotool = programs_by(tmp_path / "bin", f"read -r line; {script}; {going_on}", "xdotool")
    assert peek.data("focus", form_id, **xdotool)["is_focused"] is True
    wait_for(lambda: peek.data("windows")["windows"][0]["window_id"] == form_id, "the manager raises it")


def test_multi_keeps_foreign_files(peek: Program, book_id: int, open_form: OpenForm, tmp_path: Path) -> None:
    window_titled(peek, open_form("Other", "+300+100").title)
    words = ["--app", "Form", "--mode", "multi", "--path", tmp_path / "all" / "m.png"]
    for _ in range(2):  # our own images are replaced
        saved(peek, *words)
    second = tmp_path / "all" / "m_window1_Guest_book.png"
    second.write_text("my notes")
    (tmp_path / "all" / "m_window0_Other.png").unlink()
    assert peek.error("image", *words)["code"] == "FILE_IO_ERROR"
    assert files_below(tmp_path / "all") == [second.name]
    assert second.read_text() == "my notes"
    assert "is a folder" in peek.error("screenshot", book_id, "--path", tmp_path)["message"]


def test_kept_files_are_private_to_their_owner(peek: Program, book_id: int, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        saved(peek, "--app", "Form")
        peek.data("screenshot", book_id)
        peek.data("press", book_id, "escape")
    finally:
        os.umask(old)
    kept = [path for folder in ("tmp", "state") for path in (tmp_path / folder).rglob("*") if path.is_file()]
    assert {path.name.split(".")[-1] for path in kept} >= {"png", "json", "jsonl"}
    assert [path.name for path in kept if (mode(path) | mode(path.parent)) & 0o77] == []


SaveAt = Callable[[Path], Any]


@pytest.fixture(params=["image --app Form", "screenshot ID"])
def save_at(request: pytest.FixtureRequest, peek: Program, book_id: int) -> Iterator[SaveAt]:
    """Yield a function that saves an image at a path with umask 027, for each of the two commands."""
    words = request.param.replace("ID", str(book_id)).split()
    old = os.umask(0o027)
    yield lambda path: peek.data(*words, "--path", path)
    os.umask(old)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize(("folder_mode", "expected"), [(0o755, 0o640), (0o1777, 0o600)])
def test_new_file_follows_the_umask_except_in_a_shared_folder(
    save_at: SaveAt, tmp_path: Path, folder_mode: int, expected: int
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder").chmod(folder_mode)
    save_at(tmp_path / "folder" / "new.png")
    assert mode(tmp_path / "folder" / "new.png") == expected


@pytest.mark.parametrize("name", ["folder/old.png", "link.png"])
def test_existing_file_keeps_its_mode(save_at: SaveAt, tmp_path: Path, name: str) -> None:
    image, link = tmp_path / "folder" / "old.png", tmp_path / "link.png"
    image.parent.mkdir()
    image.write_bytes(GIF)
    image.chmod(0o664)
    (tmp_path / "between").symlink_to("folder/old.png")
    link.symlink_to(tmp_path / "between")
    save_at(tmp_path / name)
    assert image.read_bytes().startswith(b"\x89PNG")
    assert mode(image) == 0o664 and link.is_symlink()


def give_away(path: Path) -> None:
    os.chown(path, 12345, -1, follow_symlinks=False)


# link.png points to `target`
LINKS: dict[str, Callable[[Path], object]] = {
    "to no image": lambda folder: (folder / "target").write_text("my notes"),
    "to an empty file": lambda folder: (folder / "target").touch(),
    "to nothing": lambda folder: None,
    "to itself": lambda folder: (folder / "target").symlink_to("link.png"),
    "of another user": lambda folder: (
        (folder / "target").write_bytes(GIF),
        give_away(folder / "link.png"),
    ),
    "by another user's": lambda folder: (
        (folder / "target").symlink_to("image"),
        give_away(folder / "target"),
    ),
}


@pytest.mark.parametrize("kind", LINKS)
def test_path_of_an_unsafe_link_is_refused(peek: Program, tmp_path: Path, kind: str) -> None:
    if "user" in kind and os.getuid():
        pytest.skip("only root can give a link away")
    (tmp_path / "image").write_bytes(GIF)
    (tmp_path / "link.png").symlink_to("target")
    LINKS[kind](tmp_path)

    def contents() -> dict[str, object]:
        return {path.name: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}

    before = contents()
    error = peek.error("image", "--path", tmp_path / "link.png")
    assert error["code"] == "FILE_IO_ERROR" and "link.png" in error["message"]
    assert contents() == before


def test_ttl_deletes_an_image_without_a_path_only(peek: Program, book_id: int, tmp_path: Path) -> None:
    mine, folder = tmp_path / "mine.png", tmp_path / "tmp" / f"peekaboo_min-{os.getuid()}"

    def capture(age_s: float, **variables: str) -> int:
        """Let our files grow old, save another image, which deletes expired ones; count ours."""
        for path in folder.iterdir():
            os.utime(path, (time.time() - age_s,) * 2)
        saved(peek, "--path", mine, **variables)
        os.utime(mine, (0, 0))
        return len(files_below(folder))

    saved(peek, "--app", "Form")
    assert capture(500) == 2
    assert capture(700, PEEKABOO_TTL_SECONDS="0") == 2
    assert capture(700, PEEKABOO_TTL_SECONDS="800") == 2
    assert capture(700) == 0
    assert mine.exists()


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


def test_window_manager_is_not_needed(program: Program, tmp_path: Path) -> None:
    with (
        bare_x_server(compositor=True) as display,
        closing(Form(display, tmp_path / "report.jsonl", "Bare book", "+30+30")) as form,
        closing(Form(display, tmp_path / "cover.jsonl", "Cover", "+200+60")),
    ):
        peek = program.having(DISPLAY=display)
        window_id = window_titled(peek, form.title)["window_id"]
        window_titled(peek, "Cover")
        assert peek.data("focus", window_id)["is_focused"] is True
        assert peek.data("windows")["windows"][0]["window_id"] == window_id
        shot = peek.data("screenshot", window_id, "--path", tmp_path / "a.png")
        assert has_colour(tmp_path / "a.png", (2, 2))
        assert (shot["bounds"]["x"], shot["bounds"]["y"]) == (30, 30)
        peek.data("click", window_id, *form.centre("name"))
        peek.data("type", window_id, "Zoë")
        assert typed(form) == "Zoë"


def test_each_screen_is_listed_and_captured(tmp_path: Path) -> None:
    # Xvfb puts both at the origin and cannot place them elsewhere
    with bare_x_server("800x600x24", ("-screen", "1", "640x480x24", "+xinerama")) as name:
        peek = InProcessProgram(clean_environment(tmp_path, DISPLAY=name))
        assert peek.data("windows") == {"windows": []}
        screens = peek.data("list", "screens")["screens"]
        assert [(one["screen_index"], one["is_main"], one["bounds"]) for one in screens] == [
            (0, True, {"x": 0, "y": 0, "width": 800, "height": 600}),
            (1, False, {"x": 0, "y": 0, "width": 640, "height": 480}),
        ]
        saved(peek, "--path", tmp_path / "both" / "s.png")
        assert files_below(tmp_path / "both") == ["s_display0_main.png", "s_display1.png"]
        (second,) = saved(peek, "--screen-index", 1, "--path", tmp_path / "second.png")
        assert second["item_label"] == "Display 2"
        assert whole_image((tmp_path / "second.png").read_bytes()) == ImageInfo("png", 640, 480)
        assert peek.error("image", "--screen-index", 2)["code"] == "INVALID_ARGUMENT"
