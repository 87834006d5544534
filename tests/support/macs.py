"""A fake Mac for a test, and the environment of a program on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fakemac import FakeMac
from leftovers import watch
from worlds import ROOT, need, wait_for


@contextmanager
def fake_mac(folder: Path) -> Iterator[FakeMac]:
    """Start a fake Mac; at its end check that none of our programs runs and no strict rule was broken."""
    need("node")
    watch(folder)
    mac = FakeMac(folder)
    yield mac
    assert (mac.events("strict"), mac.events("dialog", "sound")) == ([], [])
    # a killed server may leave a short program, which ends by itself
    wait_for(lambda: not mac.running(), "no program of ours runs on the fake Mac")


def mac_environment(mac: FakeMac, **variables: str) -> dict[str, str]:
    return {**mac.env(), "PYTHONPATH": str(ROOT), "PEEKABOO_LOG_FILE": str(mac.folder / "log"), **variables}
