"""Parameters that several tools share, with their help."""

from __future__ import annotations

from typing import Annotated, Literal, Optional

from ..core import models

WindowId = Annotated[int, "the window's id, from list_windows"]
Region = Annotated[
    Optional[list[float]], "only this part: x, y, width, height in pixels of a screenshot of the whole window"
]
RegionScreenshotId = Annotated[
    Optional[str], "the screenshot whose pixels the region uses; default: the window's last"
]
X = Annotated[float, "pixels from the screenshot's left edge"]
Y = Annotated[float, "pixels from the screenshot's top edge"]
ScreenshotId = Annotated[Optional[str], "the screenshot whose pixels x and y are; default: the window's last"]
Button = Annotated[models.Button, "the mouse button; default left"]
Clicks = Annotated[int, "1, 2 (double click) or 3; default 1"]
Verify = Annotated[bool, "report whether the window changed, after 1 to 2 seconds; default false"]
AnalyzeType = Literal["auto", "ollama", "openai", "gemini", "anthropic", "ocr"]
