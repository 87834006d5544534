"""Fixtures for the desktop tests."""

from __future__ import annotations

from typing import Callable

import pytest
from fakemac import FakeMac
from mac_desk import Desk


@pytest.fixture
def desk(mac: FakeMac, environment: Callable[..., None]) -> Desk:
    environment(**mac.env())
    return Desk(mac)
