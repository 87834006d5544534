"""Sample apps and windows, the error of a call, and the text of a page."""

from __future__ import annotations

import html
import re
from typing import Any, Callable, Optional

import pytest

from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.core.models import App, Rect, Window


def error_of(work: Callable[..., Any], *arguments: Any, **named: Any) -> PeekabooError:
    with pytest.raises(PeekabooError) as caught:
        work(*arguments, **named)
    return caught.value


def app(name: str, pid: Optional[int] = None, bundle_id: Optional[str] = None, **others: Any) -> App:
    return App(name, pid, bundle_id, **others)


def window(window_id: int = 1, title: Optional[str] = "A", **others: Any) -> Window:
    values: dict[str, Any] = {"app_name": "Notes", "pid": 60, "bounds": Rect(10, 20, 300, 200), **others}
    return Window(window_id, title=title, **values)


def page_text(page: str) -> str:
    return html.unescape(re.sub("<[^>]*>", "", page))
