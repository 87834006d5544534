"""Check the shape of a tool's answer and return its content."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

from fakemac import FakeMac

Answer = dict[str, Any]


def seen(answer: Answer) -> Any:
    """Return the data of a success; check that both parts that a client may read contain all of it."""
    assert answer["isError"] is False, answer
    text, *others = answer["content"]
    assert text["type"] == "text"
    summary, _, document = text["text"].rpartition("\n")
    data = json.loads(document)
    pictures = [one for one in others if one["type"] == "image"]
    if pictures:
        assert "structuredContent" not in answer
    else:
        assert answer["structuredContent"] == {"summary": summary, **data}
    return data


def pictures_of(answer: Answer) -> list[bytes]:
    return [base64.b64decode(one["data"]) for one in answer["content"] if one["type"] == "image"]


def refused(answer: Answer) -> dict[str, str]:
    """Return code and text of an error answer; check its shape."""
    (block,) = answer["content"]
    code, message, next_step = (answer["_meta"][n] for n in ("backend_error_code", "message", "next_step"))
    assert {**answer, "_meta": len(answer["_meta"])} == {"content": [block], "isError": True, "_meta": 3}
    assert block["type"] == "text" and block["text"].startswith(f"{code}: {message.rstrip('.')}")
    assert next_step in block["text"]
    return {"code": code, "said": block["text"].split(": ", 1)[1]}


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def kept_by(mac: FakeMac) -> list[str]:
    """List our temporary folder without the coordinate records."""
    return [
        name
        for name in files_in(mac.folder / "tmp")
        if not re.search(r"/record_[\w.-]+_\d+_[0-9a-f]{16}\.json$", name)
    ]


# the fake Mac's apps: bundle id, pid, number of windows
_APPLICATIONS = {
    "1Password": ("com.1password.1password", 470, 1),
    "Calculator": ("com.apple.calculator", 450, 1),
    "Calendar": ("com.apple.iCal", 440, 2),
    "Finder": ("com.apple.finder", 301, 1),
    "Form": ("com.example.form", 500, 1),
    "Google Chrome": ("com.google.Chrome", 420, 1),
    "Notes": ("com.apple.Notes", 460, 0),
    "Safari": ("com.apple.Safari", 410, 2),
    "System Settings": ("com.apple.systempreferences", 490, 0),
    "Terminal": ("com.apple.Terminal", 480, 1),
    "TextEdit": ("com.apple.TextEdit", 430, 2),
}
APPLICATIONS = [
    {
        "app_name": name,
        "bundle_id": bundle_id,
        "pid": pid,
        "is_active": name == "Terminal",
        "window_count": count,
    }
    for name, (bundle_id, pid, count) in _APPLICATIONS.items()
]


SAFARI: dict[str, Any] = {"app_name": "Safari", "pid": 410, "bundle_id": "com.apple.Safari"}
# of its windows
TITLES = ["Start Page", "Bug 12/34: crash in usr/bin", "Downloads"]
ROWS = [{"window_title": title, "window_index": index} for index, title in enumerate(TITLES)]
