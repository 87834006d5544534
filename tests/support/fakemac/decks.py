"""Keynote's documents in the fake world. What its dictionary allows is decided in keynote.js; here a command takes effect.

A document is {"id", "name", "width", "height", "theme", "file", "slides", "current_slide", "ready_at"};
a slide {"base_layout", "skipped", "title_showing", "body_showing", "presenter_notes", "shapes"};
a shape {"position", "width", "height", "rotation", "opacity", "object_text", ...}.
"""  # noqa: E501

from __future__ import annotations

import copy
from typing import Any, Callable, Optional

from .world import State, log, now_ms

Event = dict[str, Any]

# A document that nobody gave a size was 1024x768 in every probe (facts E2).
NEW_DOCUMENT = {
    "width": 1024,
    "height": 768,
    "theme": "Basic White",
    "file": None,
    "modified": False,
    "current_slide": 1,
}
NEW_SLIDE = {
    "base_layout": "Title",
    "skipped": False,
    "title_showing": True,
    "body_showing": True,
    "presenter_notes": "",
}
# The default geometry of a shape is not known; these are ours.
NEW_SHAPE = {
    "position": {"x": 412, "y": 334},
    "width": 200,
    "height": 100,
    "rotation": 0,
    "opacity": 100,
    "locked": False,
    "object_text": "",
    "reflection_showing": False,
    "reflection_value": 0,
    "text_color": [0, 0, 0],
    "text_font": "HelveticaNeue",
    "text_size": 24,
}
FOREIGN_DECK = {
    "id": "F0000000-FOREIGN",
    "name": "Quarterly Results",
    "width": 1920,
    "height": 1080,
    "file": "/Users/someone/Quarterly Results.key",
}


def keynote_started(state: State, app: dict[str, Any]) -> None:
    if state["keynote"]["restores_a_deck"]:
        # "document 1 can be a restored, foreign deck" (facts E5).
        add_document(state, app, dict(FOREIGN_DECK))


def keynote_app(state: State, event: Event) -> dict[str, Any]:
    return next(app for app in state["apps"] if app["bundle_id"] == event["bundle_id"])


def document(state: State, event: Event) -> dict[str, Any]:
    return next(item for item in state["keynote"]["documents"] if item["id"] == event["document"])


def add_document(state: State, app: dict[str, Any], given: dict[str, Any]) -> None:
    from .windows import open_window

    made = {
        **copy.deepcopy(NEW_DOCUMENT),
        **given,
        "bundle_id": app["bundle_id"],
        "slides": [new_slide({})],
        "ready_at": now_ms() + state["keynote"]["ready_after_ms"],
    }
    state["keynote"]["documents"].insert(0, made)  # a new document is the front one
    window = open_window(
        state,
        {"title": made["name"], "bounds": [160, 60, 1120, 760], "keynote_document": made["id"]},
        app["pid"],
    )
    made["window"] = window["id"]


def new_slide(given: dict[str, Any]) -> dict[str, Any]:
    return {**copy.deepcopy(NEW_SLIDE), **given, "shapes": []}


def make_document(state: State, event: Event) -> None:
    given = dict(event["properties"], id=event["document"])
    given.setdefault("name", untitled(state))
    add_document(state, keynote_app(state, event), given)
    log(
        state,
        "keynote_make_document",
        document=event["document"],
        bundle_id=event["bundle_id"],
        properties=event["properties"],
    )


def untitled(state: State) -> str:
    count = sum(item["name"].startswith("Untitled") for item in state["keynote"]["documents"])
    return "Untitled" if count == 0 else f"Untitled {count + 1}"


def set_document(state: State, event: Event) -> None:
    document(state, event)[event["key"]] = event["value"]
    log(state, "keynote_set_document", document=event["document"], key=event["key"], value=event["value"])


def make_slide(state: State, event: Event) -> None:
    document(state, event)["slides"].append(new_slide(event["properties"]))
    log(state, "keynote_make_slide", document=event["document"])


def set_slide(state: State, event: Event) -> None:
    document(state, event)["slides"][event["slide"]][event["key"]] = event["value"]
    log(
        state,
        "keynote_set_slide",
        document=event["document"],
        slide=event["slide"] + 1,
        key=event["key"],
        value=event["value"],
    )


def delete_slide(state: State, event: Event) -> None:
    del document(state, event)["slides"][event["slide"]]
    log(state, "keynote_delete_slide", document=event["document"], slide=event["slide"] + 1)


def make_shape(state: State, event: Event) -> None:
    made = {**copy.deepcopy(NEW_SHAPE), **event["properties"]}
    made["position"] = settled(state, made["position"])
    document(state, event)["slides"][event["slide"]]["shapes"].append(made)
    log(
        state,
        "keynote_make_shape",
        document=event["document"],
        slide=event["slide"] + 1,
        properties=event["properties"],
    )


def settled(state: State, position: dict[str, float]) -> dict[str, float]:
    """Where Keynote puts a shape that it does not leave where it was asked for."""
    return {**position, "y": position["y"] + state["keynote"]["moves_shapes_by"]}


def set_shape(state: State, event: Event) -> None:
    shape = document(state, event)["slides"][event["slide"]]["shapes"][event["shape"]]
    if not shape["locked"] or event["key"] == "locked":
        value = event["value"]
        shape[event["key"]] = settled(state, value) if event["key"] == "position" else value
    log(
        state,
        "keynote_set_shape",
        document=event["document"],
        slide=event["slide"] + 1,
        shape=event["shape"] + 1,
        key=event["key"],
        value=event["value"],
    )


def delete_shape(state: State, event: Event) -> None:
    del document(state, event)["slides"][event["slide"]]["shapes"][event["shape"]]
    log(
        state,
        "keynote_delete_shape",
        document=event["document"],
        slide=event["slide"] + 1,
        shape=event["shape"] + 1,
    )


def close_document(state: State, event: Event) -> None:
    from .windows import forget_window

    closing = document(state, event)
    state["keynote"]["documents"].remove(closing)
    forget_window(state, {"window": closing["window"]})
    log(state, "keynote_close", document=event["document"], saving=event.get("saving"))


def save_document(state: State, event: Event) -> None:
    saved = document(state, event)
    saved["file"], saved["modified"] = event["file"], False
    log(state, "keynote_save", document=event["document"], file=event["file"])


def end_of_call(state: State, event: Event) -> None:
    """A window-less Keynote is auto-terminated between calls; the next one finds an invalid connection (facts E5: -609)."""  # noqa: E501
    from .windows import quit_app

    keynote = state["keynote"]
    for app in state["apps"]:
        if (
            app["name"] == "Keynote"
            and app["pid"] is not None
            and keynote["auto_quits"]
            and not keynote["documents"]
        ):
            quit_app(state, {"pid": app["pid"]})
            keynote["connection_invalid"] = True


def connection_error_seen(state: State, event: Event) -> None:
    state["keynote"]["connection_invalid"] = False


def export(state: State, event: Event) -> None:
    log(
        state,
        "keynote_export",
        document=event["document"],
        folder=event["folder"],
        format=event["format"],
        files=event["files"],
    )


KEYNOTE_ACTS: dict[str, Callable[[State, Event], Optional[None]]] = {
    "keynote_make_document": make_document,
    "keynote_set_document": set_document,
    "keynote_make_slide": make_slide,
    "keynote_set_slide": set_slide,
    "keynote_delete_slide": delete_slide,
    "keynote_make_shape": make_shape,
    "keynote_set_shape": set_shape,
    "keynote_delete_shape": delete_shape,
    "keynote_close": close_document,
    "keynote_save": save_document,
    "keynote_end_of_call": end_of_call,
    "keynote_connection_error_seen": connection_error_seen,
    "keynote_export": export,
}
