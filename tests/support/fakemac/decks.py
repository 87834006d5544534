"""Keynote's documents in the fake world. keynote.js decides what its dictionary allows.

A document is {"id", "name", "width", "height", "theme", "slides", "current_slide", "ready_at"};
a slide {"base_layout", "skipped", "shapes"}; a shape {"position", "width", "height", "object_text"}.
"""

from __future__ import annotations

from typing import Any, Callable

from .world import State, log, now_ms

Event = dict[str, Any]

# A new document was 1024x768 in every probe (facts E2).
NEW_DOCUMENT = {"width": 1024, "height": 768, "theme": "Basic White", "current_slide": 1}
# The default geometry of a shape is not known; this is ours.
NEW_SHAPE = {"position": {"x": 412, "y": 334}, "width": 200, "height": 100, "object_text": ""}
FOREIGN_DECK = {"id": "F0000000-FOREIGN", "name": "Quarterly Results", "width": 1920, "height": 1080}


def keynote_started(state: State, app: dict[str, Any]) -> None:
    if state["keynote"]["restores_a_deck"]:
        # "document 1 can be a restored, foreign deck" (facts E5).
        add_document(state, app, dict(FOREIGN_DECK))


def document(state: State, event: Event) -> dict[str, Any]:
    return next(item for item in state["keynote"]["documents"] if item["id"] == event["document"])


def add_document(state: State, app: dict[str, Any], given: dict[str, Any]) -> None:
    from .windows import open_window

    made = {
        **NEW_DOCUMENT,
        **given,
        "bundle_id": app["bundle_id"],
        "slides": [{"base_layout": "Title", "skipped": False, "shapes": []}],
        "ready_at": now_ms() + state["keynote"]["ready_after_ms"],
    }
    state["keynote"]["documents"].insert(0, made)  # a new document is the front one
    open_window(state, {"title": made["name"], "bounds": [160, 60, 1120, 760]}, app["pid"])


def make_document(state: State, event: Event) -> None:
    app = next(app for app in state["apps"] if app["bundle_id"] == event["bundle_id"])
    add_document(state, app, {"name": untitled(state), **event["properties"], "id": event["document"]})


def untitled(state: State) -> str:
    count = sum(item["name"].startswith("Untitled") for item in state["keynote"]["documents"])
    return "Untitled" if count == 0 else f"Untitled {count + 1}"


def make_shape(state: State, event: Event) -> None:
    made = {**NEW_SHAPE, **event["properties"]}
    made["position"] = settled(state, made["position"])
    document(state, event)["slides"][event["slide"]]["shapes"].append(made)


def settled(state: State, position: dict[str, float]) -> dict[str, float]:
    """Move a shape as Keynote does if it does not keep the requested position."""
    return {**position, "y": position["y"] + state["keynote"]["moves_shapes_by"]}


def set_value(state: State, event: Event) -> None:
    """Set a property of a document, of one of its slides, or of a shape on it."""
    target, value = document(state, event), event["value"]
    if "slide" in event:
        target = target["slides"][event["slide"]]
    if "shape" in event:
        target = target["shapes"][event["shape"]]
    target[event["key"]] = settled(state, value) if event["key"] == "position" else value


def end_of_call(state: State, event: Event) -> None:
    """Quit a Keynote without windows between calls; the next call fails with -609 (facts E5)."""
    from .windows import quit_app

    for app in state["apps"]:
        if app["name"] == "Keynote" and app["pid"] is not None and not state["keynote"]["documents"]:
            quit_app(state, {"pid": app["pid"]})
            state["keynote"]["connection_invalid"] = True


def logged(act: Callable[[State, Event], None]) -> Callable[[State, Event], None]:
    def act_and_log(state: State, event: Event) -> None:
        act(state, event)
        log(state, event["do"], **{key: event[key] for key in event if key not in ("do", "t")})

    return act_and_log


KEYNOTE_ACTS: dict[str, Callable[[State, Event], None]] = {
    "keynote_make_document": logged(make_document),
    "keynote_make_shape": logged(make_shape),
    "keynote_set": logged(set_value),
    "keynote_end_of_call": end_of_call,
    "keynote_connection_error_seen": lambda state, event: state["keynote"].update(connection_invalid=False),
}
