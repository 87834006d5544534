"""Operations on X11 start each program once."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

from in_process import InProcessProgram
from tk_windows import programs_by, window_titled
from worlds import Form, clean_environment, need, x_server

CAPTURE = {"maim": 1}
# Listings need one X connection and no program. ID stands for the id of the focused window.
OPERATIONS: dict[str, dict[str, int]] = {
    "list windows --app Form": {},
    "windows": {},
    "image": CAPTURE,
    "image --app Form --window-title left": CAPTURE,
    "image --app Form --max-dimension 90": {"maim": 1, "convert": 1},
    "image --app Form --mode multi": {"maim": 2},
    "screenshot-app-window --appName Form": CAPTURE,
    "screenshot ID": CAPTURE,
    "click ID 300 5": {"xdotool": 1},
    "press ID escape": {"xdotool": 1},
    f"type ID {'xy' * 20}": {"xdotool": 2},
}


def test_operation_starts_each_program_once(tmp_path: Path) -> None:
    need("tesseract")
    log = tmp_path / "children"
    # ImageMagick is identified with -version first; do not count that
    counted = programs_by(tmp_path / "bin", f'[ "$1" = -version ] || echo $name >> {log}')
    with (
        x_server() as display,
        closing(Form(display, tmp_path / "left.jsonl", "Left", "+20+20")),
        closing(Form(display, tmp_path / "right.jsonl", "Right", "+660+20")),
    ):
        peek = InProcessProgram(clean_environment(tmp_path, DISPLAY=display))
        window_id, _ = (window_titled(peek, title)["window_id"] for title in ("Left", "Right"))
        peek.data("focus", window_id)

        def children(command: str) -> dict[str, int]:
            log.write_text("")
            peek.data(*command.replace("ID", str(window_id)).split(), **counted)
            return dict(Counter(log.read_text().split()))

        assert {command: children(command) for command in OPERATIONS} == OPERATIONS
        found = children("find-text ID Name")
        assert found["maim"] == 1 and found.keys() == {"maim", "convert", "tesseract"}
