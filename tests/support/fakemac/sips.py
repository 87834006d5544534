"""The fake /usr/bin/sips: another size, another format (the fact sheet F)."""

from __future__ import annotations

from pathlib import Path

from .jpeg import jpeg_bytes
from .picture_files import kind_of, read_picture
from .pictures import NotAPicture, Picture, resized
from .png import png_bytes
from .programs import Exit
from .world import Folder, State

VALUES = {"-s": 2, "-z": 2, "--out": 1}  # option: how many values it takes
HELP = "Try 'sips --help' for help using this tool"


def main(folder: Folder, state: State, argv: list[str]) -> int:
    jobs, files = parsed(argv)
    if not files:
        raise Exit(4, "Error 4: no file was specified")
    source = Path(files[0])
    try:
        picture = read_picture(source)
    except (OSError, NotAPicture):
        # Its exit code on unreadable input is not reliable (facts F), so here it is the misleading one.
        warning = f"Warning: {source} not a valid file - skipping\nError 4: no file was specified"
        raise Exit(0, warning) from None
    work(picture, source, jobs)
    return 0


def parsed(argv: list[str]) -> tuple[list[list[str]], list[str]]:
    """Parse the jobs (an option with its values each) and the files."""
    jobs: list[list[str]] = []
    files: list[str] = []
    words = list(argv)
    while words:
        word = words.pop(0)
        if word in VALUES:
            jobs.append([word, *(words.pop(0) for _ in range(VALUES[word]))])
        elif word.startswith("-"):
            raise Exit(1, f"Error: unknown function '{word}'\n{HELP}")
        else:
            files.append(word)
    return jobs, files


def work(picture: Picture, source: Path, jobs: list[list[str]]) -> None:
    kind, target = kind_of(source), source  # without --out it overwrites in place (facts F)
    for name, *values in jobs:
        if name == "--out":
            target = Path(values[0])
        elif name == "-z":  # height first (facts F)
            if not all(value.isdigit() and int(value) > 0 for value in values):
                raise Exit(1, f"Error: invalid size for -z: {' '.join(values)}")
            picture = resized(picture, int(values[1]), int(values[0]))
        elif values[0] == "format":
            kind = values[1]
            if kind not in ("jpeg", "png"):  # `jpeg`, not `jpg` (facts F)
                raise Exit(1, f"Error: Unsupported output format '{kind}'\n{HELP}")
        elif values[0] != "formatOptions" or not 0 <= int(values[1]) <= 100:
            raise Exit(1, f"Error: invalid {' '.join(values)}")
    if not target.parent.is_dir():
        raise Exit(13, f"Error 13: an unknown error occurred\n  {target}")
    target.write_bytes(png_bytes(picture) if kind == "png" else jpeg_bytes(picture))
    print(f"{source}\n  {target}")


PROGRAMS = {"sips": main}
