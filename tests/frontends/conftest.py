"""Fixtures: one fake Mac and one fake model per file; servers start slowly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_ai import FakeAI
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import fake_mac
from worlds import clean_environment


@pytest.fixture(scope="module")
def mac(shared_mac: FakeMac) -> FakeMac:
    return shared_mac


@pytest.fixture(scope="module")
def ai(shared_ai: FakeAI) -> FakeAI:
    return shared_ai


@pytest.fixture
def own_mac(tmp_path: Path) -> Iterator[FakeMac]:
    """Start a fake Mac for a test that changes permissions, behaviour or window order."""
    with fake_mac(tmp_path / "mac") as fake:
        yield fake


@pytest.fixture
def forked(tmp_path: Path) -> InProcessProgram:
    return InProcessProgram(clean_environment(tmp_path))
