"""The Keynote deck that calls share: in a file, or in a server's memory."""

from __future__ import annotations

import json
from typing import NamedTuple, Optional

from ..core.errors import file_error
from ..core.models import Rect, as_plain
from ..system.files import state_folder, write_privately

KEYNOTE_IDS = ("com.apple.Keynote", "com.apple.iWork.Keynote")  # the first is that of the AppleScripts
_DECK_FILE = "keynote.json"


class Deck(NamedTuple):
    """The Keynote document in use, and the rectangle drawn last on its slide 1. Points."""

    bundle_id: str
    document_id: str
    is_ours: bool
    """True when open_keynote created it; False for a document that was open already."""
    slide_width: int
    slide_height: int
    rectangle_index: int = 0
    """Among the slide's shapes when it was drawn, from 1; 0 where no rectangle was drawn."""
    rectangle: Optional[Rect] = None
    """Its position as Keynote reports it."""

    @property
    def rectangle_id(self) -> str:
        """Shapes have no id: this is ours, and it stays although the index changes."""
        return f"{self.document_id}/1/{self.rectangle_index}"

    def address(self) -> dict[str, str]:
        return {"bundle_id": self.bundle_id, "document_id": self.document_id}


# A server's deck, as the Keynote specification's SERVER_STATE: it ends with the server. Empty in a shell
# command, whose deck is in a file that the next command reads.
_server_state: list[Optional[Deck]] = []


def keep_deck_in_memory() -> None:
    """From now on the deck of this process is its own, and there is none yet."""
    _server_state[:] = [None]


def load_deck() -> Optional[Deck]:
    """The deck as the last call left it: of this server, or of any command; None where there is none.

    Raises FILE_IO_ERROR.
    """
    if _server_state:
        return _server_state[0]
    path = state_folder() / _DECK_FILE
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        rectangle = saved.pop("rectangle")
        return Deck(rectangle=Rect(**rectangle) if rectangle else None, **saved)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None  # there is none, or one of another version of ours
    except OSError as e:
        raise file_error(path, e) from e


def save_deck(deck: Deck) -> None:
    if _server_state:
        _server_state[0] = deck
    else:
        write_privately(state_folder() / _DECK_FILE, json.dumps(as_plain(deck)))
