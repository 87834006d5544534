"""Elements from a Mac's accessibility, text from Vision, and handlers from Launch Services."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest
from fakemac import FakeMac, labels
from mac_desk import Desk, add_app, change_app, widget
from samples import error_of

from peekaboo_min.core.models import Handler, RecognisedText

# elements -------------------------------------------------------------------------------------------------


def read(desk: Desk, window_id: int) -> list[str]:
    """Format each element as `role "name" value states x,y widthxheight`."""
    return [
        f'{one.role} "{one.name}" {"".join(word + " " for word in (one.value, *one.states) if word)}'
        + "{:g},{:g} {:g}x{:g}".format(*one.box)
        for one in desk.backend.read_elements(desk.window(window_id))
    ]


SLIDER, SWITCH = {"AXDescription": "Volume"}, {"AXSubrole": "AXSwitch"}
SEARCH = {"AXSubrole": "AXSearchField", "AXHelp": "Type a word"}
TAB = {"AXRole": "AXRadioButton", "AXSubrole": "AXTabButton", "AXTitle": "Log", "AXValue": 1}
ROW = {"AXRole": "AXRow", "AXSubrole": "AXOutlineRow", "AXTitle": "Folder"}
TREE = [
    widget("page", "scroll", 0, 30, 600, 200),
    widget("beside", "button", 500, 60, 90, 20, text="Beside the window", inside="page"),
    widget("hidden", "scroll", 0, 400, 480, 100),
    widget("label", "label", 20, 40, 60, 20, text="Name", inside="page", ax=SLIDER),
    widget("name", "field", 100, 38, 200, 26, text="Ann", value="Ada", label="label", inside="page"),
    widget("secret", "password", 100, 78, 200, 26, text="Password", value="hunter2", inside="page"),
    widget("volume", "slider", 100, 110, 200, 20, value=0.25, ax=SLIDER, inside="page"),
    widget("agree", "checkbox", 100, 140, 150, 20, text="I agree", value=True, inside="page"),
    widget("dark", "checkbox", 300, 142, 90, 20, text="Dark", value=False, ax=SWITCH, inside="page"),
    widget("mixed", "checkbox", 100, 170, 90, 20, text="Some", ax={"AXValue": 2}, inside="page"),
    widget("above", "button", 320, 20, 80, 30, text="Lower half", inside="page"),
    widget("half", "button", 20, 220, 80, 30, text="Half seen", label="label", inside="page"),
    widget("below", "button", 20, 230, 80, 30, text="Scrolled out", inside="page"),
    widget("group", "group", 0, 260, 480, 0),
    widget("more", "button", 20, 270, 80, 30, text="More", ax={"AXExpanded": False}, inside="group"),
    widget("off", "button", 120, 270, 80, 30, text="Delete", enabled=False, inside="small"),
    widget("small", "group", 100, 262, 10, 4),  # only what scrolls hides its content
    widget("tab", "button", 220, 270, 80, 30, ax=TAB),
    widget("wide", "button", 400, 270, 300, 30, text="Wide"),
    widget("gone", "button", 10, 300, 80, 30, text="Outside", inside="hidden"),
    widget("close", "button", 8, 4, 14, 14, ax={"AXSubrole": "AXCloseButton"}),
    widget("bare", "button", 320, 310, 40, 30, ax={"AXTitle": None, "AXHelp": "Share", "AXEnabled": None}),
    widget("picture", "button", 370, 310, 40, 30, ax={"AXRole": "AXImage"}),
    widget("row", "group", 20, 340, 200, 15, ax={**ROW, "AXDisclosing": True, "AXSelected": True}),
    widget("find", "field", 20, 310, 200, 30, text="Find", value="", ax=SEARCH),
    widget("title", "label", 270, 340, 90, 10, ax={"AXValue": None, "AXTitle": "Untold"}),
]


@pytest.mark.parametrize("bridged", ["strings", "numbers"])
def test_elements_have_roles_names_states_and_places(desk: Desk, bridged: str) -> None:
    desk.mac.switch(bridged_integers=bridged, nil_is_null=bridged == "numbers")
    desk.mac.change_window(1090, {"widgets": TREE, "focus": "name"})
    assert read(desk, 1090) == [
        'text "Name" 840,140 60x20',
        'button "Lower half" 1140,130 80x20',
        'textbox "Name" Ada focused 920,138 200x26',
        'textbox "Password" 920,178 200x26',
        'slider "Volume" 0.25 920,210 200x20',
        'checkbox "I agree" checked 920,240 150x20',
        'switch "Dark" 1120,242 90x20',
        'checkbox "Some" 920,270 90x20',
        'button "Half seen" 840,320 80x10',
        'button "More" collapsed 840,370 80x30',
        'button "Delete" disabled 940,370 80x30',
        'tab "Log" selected 1040,370 80x30',
        'button "Wide" 1220,370 80x30',
        'searchbox "Find" 840,410 200x30',
        'button "Share" 1140,410 40x30',
        'treeitem "Folder" expanded selected 840,440 200x15',
        'text "Untold" 1090,440 90x10',
    ]


# our role -> Apple's roles and subroles (AXRoleConstants.h); others are not listed
ROLES = {
    "button": "AXButton AXMenuButton AXDisclosureTriangle AXColorWell AXDockItem",
    "checkbox": "AXCheckBox",
    "radio": "AXRadioButton",
    "combobox": "AXPopUpButton AXComboBox",
    "textbox": "AXTextField AXTextArea AXDateField AXTimeField",
    "slider": "AXSlider",
    "spinbutton": "AXIncrementor AXStepper",
    "link": "AXLink",
    "menuitem": "AXMenuItem AXMenuBarItem",
    "text": "AXStaticText",
    "heading": "AXHeading",
    "img": "AXImage",
    "progressbar": "AXProgressIndicator",
    "meter": "AXLevelIndicator",
    "row": "AXRow",
    "cell": "AXCell",
    "": "AXGroup AXUnknown AXScrollBar AXToolbar AXWindow",
}
SUBROLES = {
    "switch": "AXSwitch AXToggle",
    "searchbox": "AXSearchField",
    "tab": "AXTabButton",
    "treeitem": "AXOutlineRow",
    "": "AXCloseButton AXMinimizeButton AXZoomButton AXFullScreenButton",
}


@pytest.mark.parametrize(("attribute", "words"), [("AXRole", ROLES), ("AXSubrole", SUBROLES)])
def test_apple_roles_have_our_names(desk: Desk, attribute: str, words: dict[str, str]) -> None:
    named = {name: word for word, names in words.items() for name in names.split()}
    shown = [
        widget(
            name, "button", 10, 30 + 10 * at, 40, 8, ax={attribute: name, "AXTitle": name, "AXValue": name}
        )
        for at, name in enumerate(named)
    ]
    desk.mac.change_window(1090, {"widgets": shown})
    found = {one.name: one.role for one in desk.backend.read_elements(desk.window(1090))}
    assert found == {name: word for name, word in named.items() if word}


def rows(first: int, **more: Any) -> list[dict[str, Any]]:
    """Return a table of 1,500 rows; row `first` is at the top of the window."""
    return [widget("table", "group", 0, 0, 400, 30000, **more)] + [
        widget(f"row{at}", "label", 0, 20 * (at - first), 400, 20, text=f"Row {at}", inside="table")
        for at in range(1500)
    ]


BUTTONS = [widget(f"g{at}", "group", 0, 0, 480, 360) for at in range(3)] + [
    widget(f"b{at}", "button", at % 40 * 10, at // 40 * 8, 10, 8, text=f"B{at}", inside=f"g{at // 400}")
    for at in range(1001)
]
FIRST = widget("first", "button", 20, 40, 80, 30, text="First", inside="g0")
SECOND_HANGS = [
    *BUTTONS[:1],
    FIRST,
    {**FIRST, "name": "b", "hangs": True},
    {**FIRST, "name": "c", "text": "C"},
]
SEEN = {"visible_rows": ["deleted", *(f"row{at}" for at in range(1000, 1018))]}
HOSTILE = "a\x1b]0;x\x07\u202e$(touch x)\nb" + "x" * 10_000
READ: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "the rows that are on the screen": (rows(0), [f"Row {at}" for at in range(18)]),
    "the rows that are scrolled in": (rows(1000, **SEEN), [f"Row {at}" for at in range(1000, 1018)]),
    "a thousand": (BUTTONS[:-1], [f"B{at}" for at in range(1000)]),
    "no more than a thousand": (BUTTONS, [f"B{at}" for at in range(1000)]),
    "until it stops answering": (SECOND_HANGS, ["First"]),
}


@pytest.mark.parametrize(("widgets", "names"), READ.values(), ids=READ.keys())
def test_only_visible_elements_are_read_and_at_most_1000(
    desk: Desk, widgets: list[dict[str, Any]], names: list[str]
) -> None:
    change_app(desk.mac, "Form", **CHROMIUM)  # without a page, it is read twice
    desk.mac.change_window(1090, {"widgets": widgets})
    assert {one.name for one in desk.backend.read_elements(desk.window(1090))} == set(names)


def test_hostile_names_and_values_become_one_line(desk: Desk) -> None:
    field = widget("name", "field", 0, 40, 200, 30, text=HOSTILE, value=HOSTILE * 11)
    desk.mac.change_window(1090, {"widgets": [field]})
    (element,) = desk.backend.read_elements(desk.window(1090))
    assert (element.name.isprintable(), element.value.isprintable()) == (True, True)
    assert (len(element.name) <= 200, len(element.value), element.name[0]) == (True, 100_000, "a")


PAGE = [
    widget("back", "button", 8, 8, 30, 24, text="Back"),
    widget("page", "group", 0, 40, 480, 320, ax={"AXRole": "AXWebArea"}),
    widget("link", "button", 20, 60, 80, 24, text="More", inside="page"),
]
CHROMIUM = {"frameworks": ["Form Framework.framework"]}
# the app's behaviour, and the names that are read
WOKEN: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a tree built on demand": ({"builds_tree_on_demand": True}, ["Back", "More"]),
    "an empty page, filled by reading": ({"page": "empty"}, ["Back", "More"]),
    "a missing page, added by reading": ({"page": "missing", **CHROMIUM}, ["Back", "More"]),
    "no page: the app is no browser": ({"page": "missing", "frameworks": ["Sparkle.framework"]}, ["Back"]),
    "a page that is already there": (CHROMIUM, ["Back", "More"]),
}


@pytest.mark.parametrize(("app", "names"), WOKEN.values(), ids=WOKEN.keys())
def test_app_is_made_to_build_its_element_tree(desk: Desk, app: dict[str, Any], names: list[str]) -> None:
    change_app(desk.mac, "Form", **app)
    desk.mac.change_window(1090, {"widgets": PAGE})
    assert [line.split('"')[1] for line in read(desk, 1090)] == names


def test_elements_of_a_sheet_are_separate_from_its_window(desk: Desk) -> None:
    under = widget("under", "button", 400, 520, 80, 30, text="Under the sheet")
    desk.mac.change_window(1040, {"widgets": [under]})
    sheet = ['text "Delete all events?" -1360,460 300x24', 'button "Keep" -1060,660 120x40']
    assert read(desk, 1041) == sheet
    desk.mac.change_window(1041, {"bounds": desk.mac.window(1040)["bounds"]})
    # with equal frames, the title distinguishes them
    assert [line.split('"')[1] for line in read(desk, 1041)] == ["Delete all events?", "Keep"]


COPY = widget("copy", "menuitem", 0, 10, 150, 24, text="Copy", enabled=False, inside="group")
ITEMS = [widget("group", "group", 0, 0, 150, 44), COPY]


@pytest.fixture
def menu_id(desk: Desk) -> int:
    """Open two menus; return the second."""
    desk.mac.open_window("Terminal", bounds=[300, 100, 150, 44], layer=101)
    return desk.mac.open_window("Terminal", bounds=[300, 200, 150, 44], layer=101, widgets=ITEMS)


@pytest.mark.parametrize(("position_test", "in_children"), [("works", False), ("silent", True)])
def test_elements_of_a_menu_are_found(
    desk: Desk, menu_id: int, position_test: str, in_children: bool
) -> None:
    desk.mac.switch(position_test=position_test, menus_in_children=in_children)
    assert read(desk, menu_id) == ['menuitem "Copy" disabled 300,210 150x24']


def test_menu_that_accessibility_does_not_find_has_no_elements(desk: Desk, menu_id: int) -> None:
    desk.mac.switch(position_test="silent", menus_in_children=False)
    assert error_of(desk.backend.read_elements, desk.window(menu_id)).code.value == "NO_ELEMENTS"


NO_ELEMENTS: dict[str, tuple[Callable[[FakeMac], Any], str]] = {
    "NO_ELEMENTS": (lambda mac: mac.change_window(1090, {"widgets": []}), "1090 of Form has no elements"),
    "NO_ELEMENTS ": (
        lambda mac: mac.open_window("Form", title="Form", bounds=[820, 100, 480, 360]), "no unique match",
    ),
    "PERMISSION_DENIED_ACCESSIBILITY": (lambda mac: mac.deny("accessibility"), "Terminal lacks the Acc"),
    "TIMEOUT": (lambda mac: change_app(mac, "Form", hung=True), "Form did not answer"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "arrange", "message"), [(code, *row) for code, row in NO_ELEMENTS.items()])
def test_unreadable_elements_raise_the_reason(
    desk: Desk, code: str, arrange: Callable[[FakeMac], Any], message: str
) -> None:
    arrange(desk.mac)
    error = error_of(desk.backend.read_elements, desk.window(1090))
    assert (error.code.value, message in error.message) == (code.strip(), True)


# text -----------------------------------------------------------------------------------------------------


def test_text_in_other_scripts_is_read(desk: Desk, tmp_path: Path) -> None:
    widgets = [
        widget(f"l{at}", "label", 20, 40 * at + 40, 200, 24, text=text)
        for at, text in enumerate(["Сохранить", "東京", "Save", HOSTILE])
    ]
    desk.mac.change_window(1090, {"widgets": widgets})
    desk.data("screenshot", 1090, "--path", tmp_path / "shot.png")
    lines = desk.backend.read_text(tmp_path / "shot.png")
    found = [(one.text, one.confidence) for one in lines[:4]]
    assert found == [("Form", 1), ("Сохранить", 0.5), ("東京", 0.5), ("Save", 1)]
    # pixels from the top left
    places = [[round(number) for number in one.box] for one in lines]
    assert places == [[round(part) for part in one["rect"]] for one in labels(tmp_path / "shot.png")]
    assert (lines[4].text.isprintable(), len(lines[4].text) <= 1000) == (True, True)


@pytest.mark.parametrize("languages", [["et-EE"], ["et-EE", "ru-RU", "en-GB"]])
def test_text_is_read_in_the_users_languages(desk: Desk, tmp_path: Path, languages: list[str]) -> None:
    desk.mac.set("languages", languages)
    desk.mac.switch(language_detection="missing")
    desk.mac.change_window(1090, {"widgets": [widget("key", "button", 70, 60, 200, 60, text="Сохранить")]})
    desk.data("screenshot", 1090, "--path", tmp_path / "shot.png")
    texts = {one.text for one in desk.backend.read_text(tmp_path / "shot.png")}
    assert texts == {"Form", "Сохранить"} - ({"Сохранить"} if "ru-RU" not in languages else set())
    assert desk.mac.events("vision")[0]["languages"] == [*languages[1:2], "en-US"], "the user's first"


def test_single_characters_are_found_by_reading_in_parts(desk: Desk, tmp_path: Path) -> None:
    keys, shot = "789+456/123=", tmp_path / "shot.png"
    widgets = [
        # the first keys are on the border of two parts
        widget(f"key{at}", "button", 70 + at % 4 * 100, 60 + at // 4 * 80, 100, 60, text=text)
        for at, text in enumerate(keys)
    ]
    desk.mac.change_window(1090, {"widgets": widgets})
    desk.data("screenshot", 1090, "--path", shot)

    def texts(read: Callable[[Path], list[RecognisedText]]) -> set[str]:
        return {one.text for one in read(shot)}

    assert texts(desk.backend.read_text) == {"Form"}
    assert texts(lambda path: desk.backend.read_text(path, True)) >= set(keys)
    for key in "8+=":
        found = desk.data("find-text", 1090, key)
        (place,) = found["found"]
        desk.data("click", 1090, place["x"], place["y"], "--screenshot-id", found["screenshot_id"])
        assert desk.mac.events("click")[-1]["widget"] == f"key{keys.index(key)}"
    desk.mac.fail("osascript", "timed out (-1712)")
    assert error_of(desk.backend.read_text, shot, True).code.value == "TIMEOUT"


# opening --------------------------------------------------------------------------------------------------

# target -> kind, bundle id
HANDLERS = {
    "com.apple.TextEdit": ("app", "com.apple.TextEdit"),
    " textedit.app ": ("app", "com.apple.TextEdit"),
    "Form.app": ("app", "com.example.form"),
    "rechner": ("app", "com.apple.calculator"),  # its name in the user's language
    "Calculator": ("app", "com.apple.calculator"),
    "Mine": ("app", "org.example.mine"),  # in the home folder
    "Finder": ("app", "com.apple.finder"),
    "Terminal": ("app", "com.apple.Terminal"),
    "{}/notes.txt": ("path", "com.apple.TextEdit"),
    "{}": ("path", "com.apple.finder"),
    "https://example.org/a?b=c d": ("url", "com.apple.Safari"),
}


@pytest.mark.parametrize("target", HANDLERS)
def test_handler_is_found_without_opening_anything(desk: Desk, tmp_path: Path, target: str) -> None:
    change_app(desk.mac, "Calculator", shown_name="Rechner.app")
    mine = str(desk.mac.home / "Applications" / "Mine.app")
    add_app(desk.mac, "Mine", bundle_id="org.example.mine", path=mine)
    (tmp_path / "notes.txt").write_text("x")
    kind, bundle_id = HANDLERS[target]
    found = desk.backend.find_handler(kind, target.format(tmp_path))
    assert (found.bundle_id, desk.mac.calls("open")) == (bundle_id, [])


@pytest.mark.parametrize("target", ["TextEdti", "Utilities", "{}/data.unknown"])  # Utilities is a folder
def test_missing_handler_is_an_error(desk: Desk, tmp_path: Path, target: str) -> None:
    (tmp_path / "data.unknown").write_text("x")
    kind = "path" if target.startswith("{}") else "app"
    error = error_of(desk.backend.find_handler, kind, target.format(tmp_path))
    assert (error.code.value, "registered to open" in error.message) == ("APP_NOT_FOUND", kind == "path")


def test_two_apps_of_one_name_are_ambiguous(desk: Desk) -> None:
    add_app(desk.mac, "Form", bundle_id="org.other.form", path="/Applications/Utilities/Form.app")
    error = error_of(desk.backend.find_handler, "app", "Form")
    assert error.code.value == "AMBIGUOUS_APP_IDENTIFIER"
    assert error.hint == "name one of them: Form (com.example.form), Form (org.other.form)"


def test_open_starts_the_handler(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "notes $(touch x) \"'.txt"
    file.write_text("x")
    add_app(desk.mac, "Tool", path="/Applications/Tool.app")  # without a bundle id
    opened = {
        ("app", "Keynote Creator Studio"): ["-b", "com.apple.Keynote"],
        ("path", str(file)): ["-b", "com.apple.TextEdit", str(file)],
        ("url", "https://example.org/a"): ["-b", "com.apple.Safari", "https://example.org/a"],
        ("app", "Tool"): ["-a", "/Applications/Tool.app"],
    }
    for kind, target in opened:
        desk.backend.open(kind, target, desk.backend.find_handler(kind, target))
    assert [call["argv"] for call in desk.mac.calls("open")] == list(opened.values())
    assert "Keynote" in [one["app"] for one in desk.mac.events("launch")]
    windows = [(one["title"], one["app"]) for one in desk.mac.events("open_window")]
    assert windows[-2:] == [(file.name, "TextEdit"), ("a", "Safari")]
    desk.mac.fail("open", "The application cannot be opened because it is damaged.")
    error = error_of(desk.backend.open, "app", "Tool", Handler("Tool", "/Applications/Tool.app", None))
    assert (error.code.value, error.message) == ("PROGRAM_FAILED", "open failed with exit code 1")
