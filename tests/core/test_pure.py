"""The rooms that only think: keys, matching, image headers, names, sizes, records, settings, signatures."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Callable, Literal, Optional

import pytest
from worlds import need

from peekaboo_min.automation.coordinates import find_record, keep_record
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import App, ImageInfo, KeyChord, Point, Rect, Window
from peekaboo_min.core.settings import Settings, read_settings
from peekaboo_min.core.text import clean_text
from peekaboo_min.desktop.keys import read_chord
from peekaboo_min.desktop.matching import (
    cover_at,
    find_app,
    find_window,
    is_worth_listing,
    visible_windows,
    windows_of,
)
from peekaboo_min.frontends.signatures import Parameter, read_signature
from peekaboo_min.system.files import file_name
from peekaboo_min.system.images import model_size, sniff_image


def error_of(work: Callable[..., Any], *arguments: Any, **named: Any) -> PeekabooError:
    with pytest.raises(PeekabooError) as caught:
        work(*arguments, **named)
    return caught.value


# keys ----------------------------------------------------------------------------------------------

CHORDS: list[tuple[str, Sequence[str], str]] = [
    ("Return", (), "return"),
    ("ENTER", (), "return"),
    ("\n", (), ""),
    ("a", (), "a"),
    ("A", (), "a"),
    ("7", (), "7"),
    ("+", (), "plus"),
    ("-", (), "minus"),
    (",", (), "comma"),
    (" a ", (), "a"),
    ("space", (), "space"),
    ("F5", (), "f5"),
    ("f20", (), "f20"),
    ("page down", (), "page_down"),
    ("page-down", (), "page_down"),
    ("PageDown", (), "page_down"),
    ("pgdn", (), "page_down"),
    ("arrow_left", (), "left"),
    ("⌫", (), "backspace"),
    ("forward delete", (), "delete"),
    ("cmd+shift+t", (), "cmd+shift+t"),
    ("shift + cmd + t", (), "cmd+shift+t"),
    ("Command-Shift-T", (), "cmd+shift+t"),
    ("ctrl alt delete", (), "ctrl+alt+delete"),
    ("ctrl,a", (), "ctrl+a"),
    ("cmd++", (), "cmd+plus"),
    ("cmd+,", (), "cmd+comma"),
    ("cmd,,", (), "cmd+comma"),
    ("cmd+-", (), "cmd+minus"),
    ("cmd--", (), ""),
    ("⌘+s", (), "cmd+s"),
    ("option+ü", (), ""),
    ("t", ("cmd", "shift"), "cmd+shift+t"),
    ("cmd+t", ("cmd", "Shift"), "cmd+shift+t"),
    ("ctrl+page_up", (), "ctrl+page_up"),
    ("cmd+/", (), "cmd+slash"),
    ("shift+tab", (), "shift+tab"),
    ("f21", (), ""),
    ("", (), ""),
    ("   ", (), ""),
    ("cmd+", (), ""),
    ("+a", (), ""),
    ("++", (), ""),
    ("+++", (), ""),
    ("a+b", (), ""),
    ("cmd+return+a", (), ""),
    ("cmd", (), ""),
    ("shift", (), ""),
    ("a", ("hyper",), ""),
    ("a", ("",), ""),
    ("x" * 5000, (), ""),
    ("ab", (), ""),
]


@pytest.mark.parametrize(
    ("key", "modifiers", "chord"), CHORDS, ids=[repr(one[0])[:24] + str(n) for n, one in enumerate(CHORDS)]
)
def test_a_chord_is_read_or_refused(key: str, modifiers: Sequence[str], chord: str) -> None:
    """An empty chord stands for a refusal."""
    if chord:
        read = read_chord(key, modifiers)
        assert (str(read), type(read)) == (chord, KeyChord)
    else:
        error = error_of(read_chord, key, modifiers)
        assert (error.code, bool(error.hint), len(error.message) < 120) == (
            ErrorCode.INVALID_ARGUMENT,
            True,
            True,
        )


@pytest.mark.parametrize(
    ("slip", "meant"), [("Retrun", "return"), ("escpae", "escape"), ("bakcspace", "backspace")]
)
def test_a_slip_in_a_keys_name_is_answered_with_the_right_name(slip: str, meant: str) -> None:
    assert f"did you mean {meant}" in error_of(read_chord, f"cmd+{slip}").hint


# apps ----------------------------------------------------------------------------------------------


def app(name: str, pid: Optional[int] = None, bundle_id: Optional[str] = None, **others: Any) -> App:
    return App(name, pid, bundle_id, **others)


CHROME = app("Google Chrome", 10, "com.google.Chrome", window_count=2)
CHROME_HELPER = app("Google Chrome Helper (Renderer)", 11, "com.google.Chrome.helper")
CODE = app("Visual Studio Code", 20, "com.microsoft.VSCode", window_count=1)
CALCULATOR = app("Calculator", 30, "com.apple.calculator", window_count=1)
CALENDAR = app("Calendar", 31, "com.apple.iCal", window_count=1)
SAFARI = app("Safari", 40, "com.apple.Safari", window_count=1)
SAFARI_PREVIEW = app("Safari Technology Preview", 41, "com.apple.SafariTechnologyPreview")
AGENT = app("CoreServicesUIAgent", 50, "com.apple.coreservices.uiagent", is_regular=False)
XTERM = app("XTerm")
NOTES = app("Notes", 60, "com.apple.Notes", window_count=1)
APPS = [CHROME_HELPER, CHROME, CODE, CALCULATOR, CALENDAR, SAFARI, SAFARI_PREVIEW, AGENT, XTERM, NOTES]

FOUND = {
    "the whole name": ("Google Chrome", CHROME),
    "another case": ("google chrome", CHROME),
    "spaces around": ("  Notes ", NOTES),
    "a bundle id": ("com.apple.Safari", SAFARI),
    "a bundle id in another case": ("COM.APPLE.SAFARI", SAFARI),
    "the start of a name": ("Calcu", CALCULATOR),
    "the start of a word": ("chrome", CHROME),
    "a part within": ("studio", CODE),
    "a whole name that starts another": ("Safari", SAFARI),
    "a misspelling": ("Chromee", CHROME),
    "a swapped letter": ("Safarri", SAFARI),
    "a short form": ("VSCode", CODE),
    "Calc": ("Calc", CALCULATOR),
    "a process id": ("PID:31", CALENDAR),
    "a process id in small letters": ("pid: 31 ", CALENDAR),
    "a helper by its process id": ("PID:11", CHROME_HELPER),
    "a helper by its whole name": ("Google Chrome Helper (Renderer)", CHROME_HELPER),
    "an agent by its whole name": ("coreservicesuiagent", AGENT),
    "one without a process id": ("xterm", XTERM),
}


@pytest.mark.parametrize(("identifier", "expected"), FOUND.values(), ids=FOUND.keys())
def test_an_app_is_found_by_what_a_person_would_say(identifier: str, expected: App) -> None:
    assert find_app(identifier, APPS) == expected
    assert find_app(identifier, APPS[::-1]) == expected


NOT_FOUND = {
    "nothing": ("", ErrorCode.INVALID_ARGUMENT),
    "blanks": (" \t\n", ErrorCode.INVALID_ARGUMENT),
    "no process id": ("PID:", ErrorCode.INVALID_ARGUMENT),
    "a word for a process id": ("PID:abc", ErrorCode.INVALID_ARGUMENT),
    "a negative process id": ("PID:-1", ErrorCode.INVALID_ARGUMENT),
    "digits of another script": ("PID:٣١", ErrorCode.INVALID_ARGUMENT),
    "a process id of nobody": ("PID:99", ErrorCode.APP_NOT_FOUND),
    "a huge process id": (f"PID:{10**30}", ErrorCode.APP_NOT_FOUND),
    "nothing like it": ("Photoshop", ErrorCode.APP_NOT_FOUND),
    "one character of nothing": ("ß", ErrorCode.APP_NOT_FOUND),
    "a pattern": ("*", ErrorCode.APP_NOT_FOUND),
    "a very long name": ("x" * 10_000, ErrorCode.APP_NOT_FOUND),
    "Cal, which two begin with": ("Cal", ErrorCode.AMBIGUOUS_APP_IDENTIFIER),
    "C, which several begin with": ("C", ErrorCode.AMBIGUOUS_APP_IDENTIFIER),
    "Saf": ("Saf", ErrorCode.AMBIGUOUS_APP_IDENTIFIER),
}


@pytest.mark.parametrize(("identifier", "code"), NOT_FOUND.values(), ids=NOT_FOUND.keys())
def test_what_means_no_app_or_several_is_refused_with_the_next_step(identifier: str, code: ErrorCode) -> None:
    error = error_of(find_app, identifier, APPS)
    assert (error.code, bool(error.hint), len(error.message) < 200) == (code, True, True)


def test_an_ambiguity_names_its_candidates() -> None:
    error = error_of(find_app, "cal", APPS)
    candidates = ["Calculator (com.apple.calculator, PID:30)", "Calendar (com.apple.iCal, PID:31)"]
    assert error.details.split("\n") == candidates
    assert all(one in error.hint for one in candidates)


def test_an_unknown_app_is_answered_with_the_nearest_names() -> None:
    error = error_of(find_app, "Noets App", APPS)
    assert "Notes" in error.hint
    assert error_of(find_app, "x", []).hint == "open it first"


def test_the_helpers_of_a_browser_are_no_candidates() -> None:
    assert error_of(find_app, "renderer", APPS).code is ErrorCode.APP_NOT_FOUND
    assert error_of(find_app, "chrome helper", [CHROME_HELPER]).code is ErrorCode.APP_NOT_FOUND


def test_of_two_processes_of_one_name_the_one_with_windows_is_meant() -> None:
    two = [app("Notes", 1), app("Notes", 2, window_count=1)]
    assert find_app("notes", two) == two[1]
    both = [app("Notes", 1, window_count=1), app("Notes", 2, window_count=1)]
    assert error_of(find_app, "notes", both).code is ErrorCode.AMBIGUOUS_APP_IDENTIFIER


# windows -------------------------------------------------------------------------------------------


def window(window_id: int = 1, title: Optional[str] = "A", **others: Any) -> Window:
    values: dict[str, Any] = {"app_name": "Notes", "pid": 60, "bounds": Rect(10, 20, 300, 200), **others}
    return Window(window_id, title=title, **values)


TITLED = [window(1, "Shopping list"), window(2, "List"), window(3, None), window(4, "shopping")]


@pytest.mark.parametrize(
    ("title", "index", "expected"),
    [
        ("List", None, 2),
        ("list", None, 2),
        (" SHOPPING ", None, 4),
        ("ping l", None, 1),
        (None, 0, 1),
        (None, 3, 4),
        (None, None, 1),
    ],
)
def test_a_window_is_found_by_title_exact_first_or_by_index(
    title: Optional[str], index: Optional[int], expected: int
) -> None:
    assert find_window(NOTES, TITLED, title, index).window_id == expected


@pytest.mark.parametrize(("title", "index"), [("letter", None), (None, 4), (None, 10**30)])
def test_a_window_that_is_not_there_is_told_with_those_that_are(
    title: Optional[str], index: Optional[int]
) -> None:
    error = error_of(find_window, NOTES, TITLED, title, index)
    assert error.code is ErrorCode.WINDOW_NOT_FOUND
    assert ("'Shopping list', 'List'" in error.hint) is (title is not None)


def test_windows_are_counted_from_zero() -> None:
    assert error_of(find_window, NOTES, TITLED, None, -1).code is ErrorCode.INVALID_ARGUMENT


def test_an_app_without_windows_is_told_so() -> None:
    assert error_of(find_window, NOTES, []).code is ErrorCode.WINDOW_NOT_FOUND


@pytest.mark.parametrize(
    ("others", "is_listed"),
    [
        ({}, True),
        ({"title": ""}, True),
        ({"layer": 25}, False),
        ({"alpha": 0.0}, False),
        ({"bounds": Rect(0, 0, 49, 200)}, False),
        ({"bounds": Rect(0, 0, 50, 50)}, True),
        ({"app_name": ""}, False),
        ({"bundle_id": "com.apple.dock"}, False),
    ],
)
def test_only_what_a_person_would_call_a_window_is_listed(others: dict[str, Any], is_listed: bool) -> None:
    assert is_worth_listing(window(**others)) is is_listed


def test_windows_off_the_screen_are_listed_only_where_asked() -> None:
    windows = [window(1), window(2, is_on_screen=False)]
    assert [one.window_id for one in visible_windows(windows)] == [1]
    assert [one.window_id for one in visible_windows(windows, with_off_screen=True)] == [1, 2]


def test_the_windows_of_an_app_without_a_process_id_are_those_of_its_name() -> None:
    windows = [window(1, pid=None), window(2, pid=60), window(3, pid=None, app_name="XTerm")]
    assert [one.window_id for one in windows_of(XTERM, windows)] == [3]
    assert [one.window_id for one in windows_of(NOTES, windows)] == [2]


def test_a_click_would_hit_the_frontmost_window_there_with_its_frame() -> None:
    front = window(1, app_name="Mail", pid=2, bounds=Rect(10, 30, 50, 50), frame=Rect(10, 10, 50, 70))
    clear = window(2, app_name="Veil", pid=3, bounds=Rect(0, 0, 500, 500), alpha=0.0)
    back = window(3, bounds=Rect(0, 0, 500, 500))
    windows = [front, clear, back]
    places = [(10, 10), (59.5, 79.5), (60, 30), (9, 30), (499, 499), (500, 0)]
    assert [cover_at(Point(x, y), back, windows) for x, y in places] == [front, front, None, None, None, None]
    assert cover_at(Point(20, 20), front, windows) is None


# image headers -------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + b"\x08\x02\0\0\0"
JPEG_HEAD = b"\xff\xd8\xff\xe0\x00\x10JFIF\0\1\1\0\0\1\0\1\0\0"
JPEG = JPEG_HEAD + b"\xff\xc4\x00\x04\0\0\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", 480, 640) + b"\x03"
GIF = b"GIF89a" + struct.pack("<HH", 640, 480) + b"\0\0\0"
WEBP_LOSSY = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 640 | 0x4000, 480)
WEBP_LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14)
WEBP_EXTENDED = (
    b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
)

HEADERS = {
    "png": ("png", PNG, 24),
    "jpg": ("jpg", JPEG, len(JPEG) - 1),
    "gif": ("gif", GIF, 10),
    "lossy webp": ("webp", WEBP_LOSSY, 30),
    "lossless webp": ("webp", WEBP_LOSSLESS, 25),
    "extended webp": ("webp", WEBP_EXTENDED, 30),
}


@pytest.mark.parametrize(("kind", "data", "needed"), HEADERS.values(), ids=HEADERS.keys())
def test_kind_and_size_are_read_from_the_header_and_from_nothing_less(
    kind: str, data: bytes, needed: int
) -> None:
    assert sniff_image(data) == ImageInfo(kind, 640, 480)
    for length in range(needed):
        assert sniff_image(data[:length]) is None, f"cut to {length} bytes"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text",
        b"%PDF-1.7",
        b"\x89PNG\r\n\x1a\n",
        b"RIFF\0\0\0\0WAVEfmt ",
        b"\xff\xd8\xff" * 40,
        b"BM" + b"\0" * 60,
    ],
)
def test_what_is_no_image_is_none(data: bytes) -> None:
    assert sniff_image(data) is None


@pytest.mark.parametrize("kind", ["png", "jpg", "gif", "webp"])
def test_real_pictures_are_known_for_what_they_are(tmp_path: Path, kind: str) -> None:
    import subprocess

    need("convert")
    target = tmp_path / f"a.{kind}"
    done = subprocess.run(
        ["convert", "-size", "321x123", "gradient:red-blue", str(target)], capture_output=True
    )
    if done.returncode and kind == "webp":
        pytest.skip("this ImageMagick writes no webp")
    assert sniff_image(target.read_bytes()) == ImageInfo(kind, 321, 123)


# names and texts -----------------------------------------------------------------------------------

NAMES = {
    "plain": ("Notes", "Notes.png"),
    "slashes and spaces": ("a/b\\c d:e", "a_b_c_d_e.png"),
    "a path upwards": ("../../etc/passwd", "etc_passwd.png"),
    "a hidden file": (".bashrc", "bashrc.png"),
    "nothing": ("", "window.png"),
    "only dots": ("...", "window.png"),
    "only blanks": (" \n\t ", "window.png"),
    "a newline and an escape": ("a\n\x1b[31mb", "a_[31mb.png"),
    "direction characters": ("gnp.\u202egpj", "gnp._gpj.png"),
    "what a shell reads": ('a*?"<>|b', "a_b.png"),
    "a NUL": ("a\0b", "a_b.png"),
    "accents": ("Grüße", "Grüße.png"),
    "emoji": ("😀 party", "😀_party.png"),
}


@pytest.mark.parametrize(("stem", "name"), NAMES.values(), ids=NAMES.keys())
def test_a_picture_gets_a_name_that_every_file_system_takes(tmp_path: Path, stem: str, name: str) -> None:
    assert file_name(stem, "png") == name
    (tmp_path / name).write_bytes(b"")


@pytest.mark.parametrize("character", ["x", "é", "日", "😀"])
@pytest.mark.parametrize("start", ["", "a", "ab", "abc"])
def test_a_long_name_is_cut_to_255_bytes_between_characters(
    tmp_path: Path, character: str, start: str
) -> None:
    name = file_name(start + character * 300, "png")
    assert name == start + character * ((251 - len(start)) // len(character.encode())) + ".png"
    assert len(name.encode()) <= 255
    (tmp_path / name).write_bytes(b"")


TEXTS = {
    "plain": ("Notes", "Notes"),
    "a newline": ("a\nb\r\tc", "a b  c"),
    "colours of a terminal": ("\x1b[31mred\x1b[0m", "[31mred [0m"),
    "bidi overrides": ("\u202eevil\u2066x\u2069", "evil x"),
    "zero width": ("a\u200bb\ufeffc", "a b c"),
    "line separators": ("a\u2028b\u2029c", "a b c"),
    "C1 controls": ("a\x85b\x9bc", "a b c"),
    "long": ("y" * 201, "y" * 200),
    "a joined emoji stays whole": ("👩‍💻", "👩‍💻"),
}


@pytest.mark.parametrize(("text", "cleaned"), TEXTS.values(), ids=TEXTS.keys())
def test_text_from_outside_is_cleaned_and_cut(text: str, cleaned: str) -> None:
    assert clean_text(text) == cleaned


def test_the_last_lone_half_of_a_character_does_not_break_a_name() -> None:
    assert file_name("a\ud800b", "png") == "a_b.png"


# sizes ---------------------------------------------------------------------------------------------

SIZES = {
    "small stays": ((640, 480), (640, 480)),
    "at the edge": ((1568, 733), (1568, 733)),
    "wide": ((3136, 400), (1568, 200)),
    "tall": ((400, 3136), (200, 1568)),
    "too many pixels": ((1568, 1568), (1072, 1072)),
    "a large screen": ((2560, 1600), (1356, 847)),
    "a line": ((100_000, 1), (1568, 1)),
    "one pixel": ((1, 1), (1, 1)),
}


@pytest.mark.parametrize(("size", "expected"), SIZES.values(), ids=SIZES.keys())
def test_a_picture_for_a_model_is_as_large_as_it_may_be(
    size: tuple[int, int], expected: tuple[int, int]
) -> None:
    width, height = model_size(ImageInfo("png", *size))
    assert (width, height) == expected
    assert max(width, height) <= 1568 and width * height <= 1_150_000


def test_no_size_goes_beyond_the_limits() -> None:
    for width in (700, 1071, 1073, 1569, 2047, 5000):
        for height in (1, 500, 1073, 1569, 3333):
            fitted = model_size(ImageInfo("png", width, height))
            assert max(fitted) <= 1568 and fitted[0] * fitted[1] <= 1_150_000 and min(fitted) >= 1


# records -------------------------------------------------------------------------------------------


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path


SHOWN = window(7, bounds=Rect(10.5, -20, 300, 200))
PICTURE = ImageInfo("jpg", 600, 400)


def test_a_record_comes_back_as_it_was_kept(records: Path) -> None:
    kept = keep_record(SHOWN, PICTURE)
    assert find_record(SHOWN) == kept
    assert find_record(SHOWN, kept.screenshot_id) == kept
    assert (kept.scale, len(kept.screenshot_id)) == (2.0, 16)
    assert kept.to_point(Point(599, 0), Rect(0, 0, 300, 200)) == Point(299.5, 0)


def test_the_last_record_counts_and_an_older_one_by_its_id(records: Path) -> None:
    first = keep_record(SHOWN, PICTURE)
    second = keep_record(SHOWN, ImageInfo("jpg", 300, 200))
    assert (find_record(SHOWN), find_record(SHOWN, first.screenshot_id)) == (second, first)


def test_a_moved_window_keeps_its_record(records: Path) -> None:
    kept = keep_record(SHOWN, PICTURE)
    assert find_record(replace(SHOWN, bounds=Rect(-500, 900, 300, 200))) == kept


CHANGED = {
    "wider": replace(SHOWN, bounds=Rect(10.5, -20, 302, 200)),
    "lower": replace(SHOWN, bounds=Rect(10.5, -20, 300, 190)),
    "of another app": replace(SHOWN, app_name="Mail"),
    "of another process": replace(SHOWN, pid=61),
    "of a process that tells no id": replace(SHOWN, pid=None),
    "another window": replace(SHOWN, window_id=70),
    "a window whose id begins alike": replace(SHOWN, window_id=77),
}


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED.keys())
def test_a_window_that_is_another_or_was_resized_makes_its_record_stale(
    records: Path, changed: Window
) -> None:
    kept = keep_record(SHOWN, PICTURE)
    assert error_of(find_record, changed).code is ErrorCode.STALE_SCREENSHOT
    assert error_of(find_record, changed, kept.screenshot_id).code is ErrorCode.STALE_SCREENSHOT


def test_a_picture_of_another_shape_is_not_clicked(records: Path) -> None:
    keep_record(SHOWN, ImageInfo("jpg", 600, 440))
    assert error_of(find_record, SHOWN).code is ErrorCode.STALE_SCREENSHOT


@pytest.mark.parametrize("bad", ["", "*", "../../x", "0" * 15, "0" * 17, "G" * 16, "0" * 16 + "\n", "A" * 16])
def test_an_id_that_is_none_is_refused(records: Path, bad: str) -> None:
    keep_record(SHOWN, PICTURE)
    assert error_of(find_record, SHOWN, bad).code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"bounds": 1}', '{"bounds": {"x": 1}}', "\x00\xff", "null"]
)
def test_a_broken_record_is_none(records: Path, text: str) -> None:
    kept = keep_record(SHOWN, PICTURE)
    (path,) = records.rglob("record_*.json")
    path.write_text(text, encoding="latin-1")
    assert error_of(find_record, SHOWN, kept.screenshot_id).code is ErrorCode.STALE_SCREENSHOT


def test_a_record_is_for_its_owner_only(records: Path) -> None:
    keep_record(SHOWN, PICTURE)
    (path,) = records.rglob("record_*.json")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


# settings ------------------------------------------------------------------------------------------

READ: dict[str, tuple[dict[str, str], str, Any]] = {
    "nothing": ({}, "ttl_seconds", 600),
    "a number": ({"PEEKABOO_TTL_SECONDS": " 5 "}, "ttl_seconds", 5),
    "zero": ({"PEEKABOO_TTL_SECONDS": "0"}, "ttl_seconds", 0),
    "empty": ({"PEEKABOO_TTL_SECONDS": ""}, "ttl_seconds", 600),
    "blank": ({"PEEKABOO_READONLY": "  "}, "is_read_only", False),
    "yes": ({"PEEKABOO_READONLY": "YES"}, "is_read_only", True),
    "off": ({"PEEKABOO_READONLY": "off"}, "is_read_only", False),
    "a fraction": ({"PEEKABOO_AI_TIMEOUT": "1.5"}, "ai_timeout_s", 1.5),
    "the other name": ({"GOOGLE_API_KEY": "g"}, "gemini_key", "g"),
    "the first name before the other": ({"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": "k"}, "gemini_key", "k"),
    "the other name where the first is empty": (
        {"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": ""},
        "gemini_key",
        "g",
    ),
    "another spelling": ({"PEEKABOO_MCP_CONSOLE_LOGGING": "true"}, "logs_to_console", True),
}


@pytest.mark.parametrize(("environ", "name", "value"), READ.values(), ids=READ.keys())
def test_a_variable_is_read_as_its_kind(environ: dict[str, str], name: str, value: Any) -> None:
    read = read_settings(environ)
    assert (getattr(read, name), replace(read, **{name: getattr(Settings(), name)})) == (value, Settings())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PEEKABOO_TTL_SECONDS", "abc"),
        ("PEEKABOO_TTL_SECONDS", "-1"),
        ("PEEKABOO_TTL_SECONDS", "1e3"),
        ("PEEKABOO_AI_TIMEOUT", "nan"),
        ("PEEKABOO_AI_TIMEOUT", "inf"),
        ("PEEKABOO_READONLY", "2"),
    ],
)
def test_a_variable_of_another_kind_is_refused_by_name(name: str, value: str) -> None:
    error = error_of(read_settings, {name: value})
    assert (error.code, name in error.message, "unset it" in error.hint) == (
        ErrorCode.INVALID_ARGUMENT,
        True,
        True,
    )


def test_no_key_stands_in_the_repr_of_the_settings() -> None:
    keys = {name: f"secret-{name}" for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")}
    assert "secret" not in repr(read_settings(keys))


# signatures ----------------------------------------------------------------------------------------


def example_tool(
    name: Annotated[str, "the\n  name"],
    mode: Annotated[Optional[Literal["a", "b"]], "how"] = None,
    tags: Annotated[Optional[list[Literal["x", "y"]]], "which"] = None,
    *,
    size: Annotated[int, "how large"],
    plain: bool = False,
) -> None:
    """Does a thing,
    in two lines. And more.

    A second part.

    Example: peekaboo-min thing 5
    leaves thing.png
    """


def test_a_signature_is_read_whole() -> None:
    read = read_signature(example_tool)
    assert (read.summary, read.description, read.example) == (
        "Does a thing, in two lines. And more.",
        "Does a thing,\nin two lines. And more.\n\nA second part.",
        "peekaboo-min thing 5\nleaves thing.png",
    )
    strings, tags = Optional[Literal["a", "b"]], Optional[list[Literal["x", "y"]]]
    assert read.parameters == (
        Parameter("name", "the name", str, str, (), False, True, False, None),
        Parameter("mode", "how", str, strings, ("a", "b"), False, False, False, None),
        Parameter("tags", "which", str, tags, ("x", "y"), True, False, False, None),
        Parameter("size", "how large", int, int, (), False, True, True, None),
        Parameter("plain", "", bool, bool, (), False, False, True, False),
    )
    assert [one.flag for one in read.parameters] == ["--name", "--mode", "--tags", "--size", "--plain"]
