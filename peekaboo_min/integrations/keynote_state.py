"""What Keynote calls share across processes: deck, turn, the agent's log."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Optional

from ..core.errors import file_error
from ..core.models import Rect
from ..core.settings import settings
from ..system.files import state_folder, write_privately

_CONTROL_CHARACTER = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True)
class Deck:
    """The Keynote document that we work in, and the rectangle that was drawn last on its slide 1. Points."""

    bundle_id: str
    document_id: str
    is_ours: bool
    """True when open_keynote made it; False for one that was open already."""
    slide_width: int
    slide_height: int
    rectangle_id: str = ""
    rectangle_index: int = 0
    """Among the slide's shapes, from 1; 0 where no rectangle was drawn."""
    rectangle: Optional[Rect] = None
    """Where it settled."""

    def address(self) -> dict[str, str]:
        return {"bundle_id": self.bundle_id, "document_id": self.document_id}

    def resized(self, width: int, height: int) -> Deck:
        return replace(self, slide_width=width, slide_height=height)

    def with_rectangle(self, index: int, place: Rect, rectangle_id: str = "") -> Deck:
        """The id is our own, because shapes have none; a rectangle that changed its index keeps it."""
        own_id = rectangle_id or f"{self.document_id}/1/{index}"
        return replace(self, rectangle_id=own_id, rectangle_index=index, rectangle=place)


def _deck_file() -> Path:
    return state_folder() / "keynote.json"


def recall_deck() -> Optional[Deck]:
    """The deck as the last call left it, in whatever process; None where there is none. Raises FILE_IO_ERROR."""
    try:
        told: dict[str, Any] = json.loads(_deck_file().read_text(encoding="utf-8"))
        place = told.pop("rectangle")
        return Deck(rectangle=Rect(**place) if place else None, **told)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None  # of another version of ours
    except OSError as e:
        raise file_error(_deck_file(), e) from e


def remember_deck(deck: Deck) -> None:
    """Raises FILE_IO_ERROR."""
    write_privately(_deck_file(), json.dumps(asdict(deck)))


def write_agent_line(source: str, text: str, path: Optional[Path] = None) -> None:
    """`[UTC][source] text` as one line of the log at `path`, or of PEEKABOO_AGENT_LOG; nothing where neither is named.

    Client and server write into the same file, which therefore tells who did what. Raises FILE_IO_ERROR.
    """
    if path is None:
        if not settings().agent_log:
            return
        path = Path(settings().agent_log)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # a model's words must not look like a line of ours
    line = _CONTROL_CHARACTER.sub(
        lambda found: found[0].encode("unicode_escape").decode(), f"[{now}][{source}] {text}"
    )
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as f:
            f.write(line.encode("utf-8") + b"\n")
    except OSError as e:
        raise file_error(path, e) from e
