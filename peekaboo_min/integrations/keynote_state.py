"""What Keynote calls share across processes: the deck, and the agent's log."""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Optional

from ..core.errors import file_error
from ..core.log import log_info
from ..core.models import Rect
from ..core.settings import settings
from ..system.files import state_folder, write_privately

_CONTROL_CHARACTER = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True)
class Deck:
    """The Keynote document in use, and the rectangle drawn last on its slide 1. Points."""

    bundle_id: str
    document_id: str
    is_ours: bool
    """True when open_keynote created it; False for a document that was open already."""
    slide_width: int
    slide_height: int
    rectangle_id: str = ""
    rectangle_index: int = 0
    """Among the slide's shapes, from 1; 0 where no rectangle was drawn."""
    rectangle: Optional[Rect] = None
    """Its position as Keynote reports it."""

    def address(self) -> dict[str, str]:
        return {"bundle_id": self.bundle_id, "document_id": self.document_id}

    def with_rectangle(self, index: int, rectangle: Rect, rectangle_id: str = "") -> Deck:
        """The id is our own, because shapes have none; a rectangle whose index changed keeps it."""
        own_id = rectangle_id or f"{self.document_id}/1/{index}"
        return replace(self, rectangle_id=own_id, rectangle_index=index, rectangle=rectangle)


# A server's deck, as the Keynote specification's SERVER_STATE: it ends with the server. Empty in a shell
# command, whose deck is in a file that the next command reads.
_server_state: list[Optional[Deck]] = []


def keep_deck_in_memory() -> None:
    """From now on the deck of this process is its own, and there is none yet."""
    _server_state[:] = [None]


def _deck_file() -> Path:
    return state_folder() / "keynote.json"


def load_deck() -> Optional[Deck]:
    """The deck as the last call left it: of this server, or of any command; None where there is none.

    Raises FILE_IO_ERROR.
    """
    if _server_state:
        return _server_state[0]
    try:
        saved: dict[str, Any] = json.loads(_deck_file().read_text(encoding="utf-8"))
        rectangle = saved.pop("rectangle")
        return Deck(rectangle=Rect(**rectangle) if rectangle else None, **saved)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None  # there is none, or one of another version of ours
    except OSError as e:
        raise file_error(_deck_file(), e) from e


def save_deck(deck: Deck) -> None:
    """Raises FILE_IO_ERROR."""
    if _server_state:
        _server_state[0] = deck
        return
    write_privately(_deck_file(), json.dumps(asdict(deck)))


def write_agent_line(source: str, text: str, path: Optional[Path] = None) -> None:
    """Write `[UTC][source] text` as one line of the log at `path`, else of PEEKABOO_AGENT_LOG if it is set.

    Without `path` the server's own log gets it as well, whoever the client is.
    Client and server write into the same file, which thus shows who did what. Raises FILE_IO_ERROR.
    """
    if path is None:
        log_info(f"[{source}] {text}")
        if not settings().agent_log:
            return
        path = Path(settings().agent_log)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # a model's reply must not look like a line of ours
    line = _CONTROL_CHARACTER.sub(
        lambda found: found[0].encode("unicode_escape").decode(), f"[{now}][{source}] {text}"
    )
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as f:
            f.write(line.encode("utf-8") + b"\n")
    except OSError as e:
        raise file_error(path, e) from e
