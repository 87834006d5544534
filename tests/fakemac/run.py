"""The front door of every fake program: `python3 run.py FOLDER PROGRAM ARGUMENT...`; also `run.py FOLDER settle`."""
from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fakemac.programs import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
