"""Clients that defer tools find the right one by BM25 over names and descriptions."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

from peekaboo_min.frontends.arguments import read_signature
from peekaboo_min.tools.table import TOOLS

K1, B = 1.2, 0.75  # the usual parameters of BM25
# request | acceptable tools or groups; written without sight of the descriptions
REQUESTS = Path(__file__).with_name("tool_requests.txt").read_text(encoding="utf-8").splitlines()
DOCUMENTS = {name: f"{name} {read_signature(row.load()).description}" for name, row in TOOLS.items()}


def terms(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def ranked(request: str, documents: dict[str, str]) -> list[str]:
    """Return the names of the documents, best first."""
    counts = {name: Counter(terms(text)) for name, text in documents.items()}
    average = sum(map(Counter.total, counts.values())) / len(counts)
    scores = dict.fromkeys(documents, 0.0)
    for term in terms(request):
        having = sum(term in count for count in counts.values())
        idf = math.log(1 + (len(counts) - having + 0.5) / (having + 0.5))
        for name, count in counts.items():
            length = K1 * (1 - B + B * count.total() / average)
            scores[name] += idf * count[term] * (K1 + 1) / (count[term] + length)
    return sorted(documents, key=lambda name: -scores[name])


def is_right(name: str, accepted: str) -> bool:
    return not {name, TOOLS[name].group}.isdisjoint(accepted.split())


def test_search_finds_the_right_tool_for_natural_requests() -> None:
    places = {}
    for request, accepted in (line.split(" | ") for line in REQUESTS):
        places[request] = [is_right(name, accepted) for name in ranked(request, DOCUMENTS)].index(True)
    late = [request for request, place in places.items() if place >= 5]
    assert len(places) >= 60 and len(late) <= 0.05 * len(places), late
    assert sum(place == 0 for place in places.values()) >= 0.7 * len(places), places


def test_search_for_computer_use_finds_the_tools_that_see_and_act() -> None:
    for request in ("computer use", "control a desktop GUI on this computer", "mouse keyboard screenshot"):
        assert {"click", "type_text", "take_window_screenshot"} <= {*ranked(request, DOCUMENTS)[:8]}, request
