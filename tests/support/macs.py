"""A fake Mac for a test, and the environment of a program on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fakemac import FakeMac
from worlds import ROOT, need


@contextmanager
def fake_mac(folder: Path) -> Iterator[FakeMac]:
    """A fake Mac; at its end nothing of us runs in it, and nothing sloppy was done to it."""
    need("node")
    mac = FakeMac(folder)
    yield mac
    assert (mac.events("strict"), mac.events("dialog", "sound"), mac.running()) == ([], [], [])


def mac_environment(mac: FakeMac, **variables: str) -> dict[str, str]:
    return {**mac.env(), "PYTHONPATH": str(ROOT), "PEEKABOO_LOG_FILE": str(mac.folder / "log"), **variables}
