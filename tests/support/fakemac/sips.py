"""The fake /usr/bin/sips: query, resize, crop and convert (the fact sheet F)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .jpeg import jpeg_bytes
from .picture_files import kind_of, read_picture
from .pictures import NotAPicture, Picture, cropped, resized
from .png import png_bytes
from .programs import Exit
from .world import Folder, State

QUALITY = {"low": 25, "normal": 50, "high": 75, "best": 95, "default": 75}
# option: how many values it takes
OPTIONS = {
    "-g": 1,
    "--getProperty": 1,
    "-s": 2,
    "--setProperty": 2,
    "-Z": 1,
    "--resampleHeightWidthMax": 1,
    "-z": 2,
    "--resampleHeightWidth": 2,
    "--resampleWidth": 1,
    "--resampleHeight": 1,
    "-c": 2,
    "--cropToHeightWidth": 2,
    "--cropOffset": 2,
    "-o": 1,
    "--out": 1,
}
LONG = {
    "--getProperty": "-g",
    "--setProperty": "-s",
    "--resampleHeightWidthMax": "-Z",
    "--resampleHeightWidth": "-z",
    "--cropToHeightWidth": "-c",
    "-o": "--out",
}

Job = tuple[str, list[str]]


def main(folder: Folder, state: State, argv: list[str]) -> int:
    jobs, files = parsed(argv)
    if not files:
        raise Exit(4, "Error 4: no file was specified")
    for name in files:
        try:
            picture = read_picture(Path(name))
        except (OSError, NotAPicture):
            # Its exit code on unreadable input is not reliable (facts F), so here it is the misleading one.
            raise Exit(
                0, f"Warning: {name} not a valid file - skipping\nError 4: no file was specified"
            ) from None
        work(picture, Path(name), jobs)
    return 0


def parsed(argv: list[str]) -> tuple[list[Job], list[str]]:
    jobs: list[Job] = []
    files: list[str] = []
    words = list(argv)
    while words:
        word = words.pop(0)
        if word in OPTIONS:
            count = OPTIONS[word]
            if len(words) < count:
                raise Exit(
                    1, f"Error: {word} needs {count} value(s)\nTry 'sips --help' for help using this tool"
                )
            jobs.append((LONG.get(word, word), [words.pop(0) for _ in range(count)]))
        elif word.startswith("-"):
            raise Exit(1, f"Error: unknown function '{word}'\nTry 'sips --help' for help using this tool")
        else:
            files.append(word)
    return jobs, files


def work(picture: Picture, source: Path, jobs: list[Job]) -> None:
    kind, quality, target, asked = kind_of(source), 75, source, []
    changed = False
    for name, values in jobs:
        if name == "-g":
            asked.append(values[0])
        elif name == "--out":
            target = Path(values[0]) / source.name if Path(values[0]).is_dir() else Path(values[0])
            changed = True
        elif name == "-s":
            kind, quality, picture = with_property(picture, kind, quality, *values)
            changed = True
        elif name != "--cropOffset":
            picture = transformed(picture, name, numbers(name, values), jobs)
            changed = True
    if asked:
        print(source)
        for key in asked:
            print(f"  {key}: {property_text(picture, kind, key)}")
    if changed:  # without --out it overwrites in place (facts F)
        if not target.parent.is_dir():
            raise Exit(13, f"Error 13: an unknown error occurred\n  {target}")
        target.write_bytes(
            png_bytes(picture) if kind == "png" else jpeg_bytes(lighter(picture, quality), quality)
        )
        print(f"{source}\n  {target}")


def lighter(picture: Picture, quality: int) -> Picture:
    """A JPEG of a screenshot is about a tenth of its PNG, less at a low quality: for files that carry grain."""  # noqa: E501
    return picture._replace(grain=int(picture.grain * (0.02 + 0.0013 * quality)))


def with_property(
    picture: Picture, kind: str, quality: int, key: str, value: str
) -> tuple[str, int, Picture]:
    if key == "format":
        if value not in ("jpeg", "png"):  # `jpeg`, not `jpg` (facts F)
            raise Exit(
                1, f"Error: Unsupported output format '{value}'\nTry 'sips --help' for help using this tool"
            )
        return value, quality, picture
    if key == "formatOptions":
        if value not in QUALITY and not (value.isdigit() and int(value) <= 100):
            raise Exit(1, f"Error: invalid formatOptions '{value}'")
        return kind, QUALITY.get(value) or int(value if value.isdigit() else 0), picture
    if key in ("dpiWidth", "dpiHeight"):
        return kind, quality, picture._replace(dpi=round(float(value)))
    raise Exit(1, f"fakemac: sips -s {key} is not simulated")


def numbers(name: str, values: list[str]) -> list[int]:
    if not all(value.isdigit() and int(value) > 0 for value in values):
        raise Exit(1, f"Error: invalid size for {name}: {' '.join(values)}")
    return [int(value) for value in values]


def transformed(picture: Picture, name: str, values: list[int], jobs: list[Job]) -> Picture:
    width, height = picture.width, picture.height
    if name == "-Z":  # the longest side; it enlarges too (facts F)
        factor = values[0] / max(width, height)
        return resized(picture, max(1, round(width * factor)), max(1, round(height * factor)))
    if name == "-z":  # height first (facts F)
        return resized(picture, values[1], values[0])
    if name == "--resampleWidth":
        return resized(picture, values[0], max(1, round(height * values[0] / width)))
    if name == "--resampleHeight":
        return resized(picture, max(1, round(width * values[0] / height)), values[0])
    crop_height, crop_width = min(values[0], height), min(values[1], width)
    top, left = (height - crop_height) // 2, (width - crop_width) // 2
    for other, offset in jobs:
        if other == "--cropOffset":
            top, left = min(int(offset[0]), height - crop_height), min(int(offset[1]), width - crop_width)
    return cropped(picture, left, top, crop_width, crop_height)


def property_text(picture: Picture, kind: str, key: str) -> Any:
    values = {
        "pixelWidth": picture.width,
        "pixelHeight": picture.height,
        "dpiWidth": f"{picture.dpi or 72:.3f}",
        "dpiHeight": f"{picture.dpi or 72:.3f}",
        "format": kind,
        "space": "RGB",
    }
    return values.get(key, "<nil>")


PROGRAMS = {"sips": main}
