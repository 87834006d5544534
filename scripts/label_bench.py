"""Measure text recognition: 20 windows of five toolkits, 1,400 labels in six languages.

    python3 scripts/label_bench.py [--save FOLDER | --from FOLDER] [--languages eng+deu] [--only tk] [--list]

It opens the windows on a desktop of its own and looks for each label in its window's screenshot. A label is
found if all whole labels of its text are in its own place, which the toolkit reports. `Other words` differ
from a label in an accent or a letter and are not in the window: none may be pressed. Processor time is
compared with `tesseract IMAGE stdout --psm 11 -l LANGUAGES tsv`, which reads all languages in one run.

It needs tesseract's data for the languages. Windows of a toolkit that is not installed are left out: GTK 3
and 4 (python3-gi, gir1.2-gtk-3.0, gir1.2-gtk-4.0), Qt (python3-pyqt5), Tk (wish), Chromium.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Callable, NamedTuple
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # measure this folder, not an installed copy

from peekaboo_min.automation.capture import Subject, take_image  # noqa: E402
from peekaboo_min.automation.labels import Place, find_in_lines  # noqa: E402
from peekaboo_min.core.models import RecognisedText, Rect  # noqa: E402
from peekaboo_min.core.settings import change_environment  # noqa: E402
from peekaboo_min.desktop.select import this_desktop  # noqa: E402
from peekaboo_min.desktop.x11 import ocr  # noqa: E402

FOLDER = ROOT / "scripts" / "label_bench"
INSIDE = "--inside"  # this process runs on the desktop that an earlier one started
# the number of labels of each kind in a window
KINDS = {
    "menu": 5, "title": 2, "tab": 5, "label": 9, "disabled label": 2, "tick box": 7, "disabled tick box": 2,
    "radio button": 6, "placeholder": 6, "row": 7, "selected row": 1, "frame": 3, "button": 8,
    "disabled button": 2, "green button": 5,
}  # fmt: skip
WINDOWS = (  # toolkit, theme, scale
    "gtk3 light 1, gtk3 dark 1, gtk3 light 1.25, gtk3 dark 2, gtk4 light 1, gtk4 dark 1.25, gtk4 light 1.5, "
    "gtk4 light 2, qt light 1, qt dark 1, qt light 1.5, qt dark 2, tk light 1, tk dark 1, tk light 1.25, "
    "tk dark 2, chromium light 1, chromium dark 1, chromium dark 1.5, chromium light 2"
)
BROWSER = "--no-sandbox --test-type --no-first-run --password-store=basic --enable-logging=stderr"
BOXES = re.compile(r"BOXES (\[\[[-\d., \[\]]+\]\])")
WHOLE = ("label", "lookalike")
START_S = 60


class Label(NamedTuple):
    """A label in a window; `box` is in pixels of the window's screenshot."""

    kind: str
    language: str
    text: str
    box: tuple[float, float, float, float] = (0, 0, 0, 0)


class Saved(NamedTuple):
    """A window: its screenshot, its labels, and texts that differ from them and are not in it."""

    name: str
    image: Path
    labels: list[Label]
    other_words: list[str]


class Reading(NamedTuple):
    """A window with its recognised lines, and the seconds of our reading and of plain tesseract."""

    window: Saved
    lines: list[RecognisedText]
    seconds: list[float]  # processor time of both, then by the clock

    def whole_places(self, text: str) -> list[Place]:
        return [place for place in find_in_lines(text, self.lines) if place.match in WHOLE]

    def judge(self, label: Label) -> str:
        """Return found, wrong or missed."""
        places = self.whole_places(label.text)
        if not places:
            return "missed"
        is_right = all(Rect(*label.box).contains(place.box.centre) for place in places)
        return "found" if is_right else "wrong"

    def presses(self, text: str) -> bool:
        """Return True if click_text would press this text: one whole label, and no missing language."""
        return len(self.whole_places(text)) == 1 and not ocr.missing_language(text)


def languages_of_words() -> dict[str, list[list[str]]]:
    """Return the first words, second words and pairs of each language.

    Labels are a first and a second word, a second word, or a word of a pair, which differs in a letter or an
    accent.
    """
    blocks = (FOLDER / "words.txt").read_text(encoding="utf-8").split("\n\n")
    return {code: [line.split() for line in lines] for code, *lines in map(str.splitlines, blocks)}


def labels_of(number: int) -> tuple[list[Label], list[str]]:
    """Choose a window's labels; return them and the other words."""
    chance = random.Random(number)
    languages: dict[str, str] = {}  # of each text
    phrases, others = [], []
    for language, (first, second, pairs) in languages_of_words().items():
        at = chance.sample(range(0, len(pairs), 2), 2)
        languages.update({pairs[at[0]]: language, pairs[at[1]]: language})
        others += [pairs[at[0] + 1], pairs[at[1] + 1]]
        if number % 2 == 0:  # half of the windows show both words of a pair
            languages[pairs[at[0] + 1]] = language
        phrases += [(f"{a} {b}", language) for a in first for b in second]
        phrases += 3 * [(b[:1].upper() + b[1:], language) for b in second]
    chance.shuffle(phrases)
    while len(languages) < sum(KINDS.values()):
        languages.setdefault(*phrases.pop())
    texts = chance.sample(list(languages), len(languages))
    kinds = [kind for kind, count in KINDS.items() for _ in range(count)]
    shown = set(map(str.lower, texts))
    others = [text for text in [*others, *map(without_accents, texts)] if text.lower() not in shown]
    labels = [Label(kind, languages[text], text) for kind, text in zip(kinds, texts)]
    return labels, list(dict.fromkeys(others))


def without_accents(text: str) -> str:
    plain = unicodedata.normalize("NFD", text.translate(str.maketrans("ßłŁ", "slL")))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))


def command_of(window: str, labels: list[Label], folder: str) -> list[str]:
    toolkit, theme, scale = window.split()
    words = [word for label in labels for word in (label.kind, label.text)]
    if toolkit.startswith("gtk"):
        return ["/usr/bin/python3", str(FOLDER / "gtk.py"), f"{toolkit[3]}.0", scale, theme, *words]
    if toolkit == "qt":
        return ["/usr/bin/python3", str(FOLDER / "qt.py"), scale, theme, *words]
    if toolkit == "tk":
        return ["wish", str(FOLDER / "tk.tcl"), "--", scale, theme, *words]
    page = f"{(FOLDER / 'page.html').as_uri()}#{quote(json.dumps([theme, *words]))}"
    options = [f"--user-data-dir={folder}", f"--force-device-scale-factor={scale}", "--window-size=1000,660"]
    return ["chromium", *BROWSER.split(), *options, f"--app={page}"]


def save_windows(folder: Path, only: str) -> None:
    """Open each window; save its screenshot, and its labels with their places."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, window in enumerate(WINDOWS.split(", ")):
        name = f"{number:02} {window}"
        if only in name:
            labels, other_words = labels_of(number)
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as own:
                boxes, image = shown(command_of(window, labels, own), scale=window.split()[2])
            if image:
                labels = [label._replace(box=box) for label, box in zip(labels, boxes)]
                file = folder / f"{name.replace(' ', '-')}.png"
                file.write_bytes(image)
                data = json.dumps([name, labels, other_words], ensure_ascii=False)
                file.with_suffix(".json").write_text(data, encoding="utf-8")
            else:
                print(f"{name}: left out, the toolkit is not installed", file=sys.stderr)


def shown(argv: list[str], scale: str) -> tuple[list[Any], bytes]:
    """Open a window; return its labels' boxes and its screenshot, or nothing if it does not open."""
    scales = {"QT_SCALE_FACTOR": scale, "GDK_SCALE": "2" if scale == "2" else "1"}
    options: dict[str, Any] = {"text": True, "start_new_session": True, "env": {**os.environ, **scales}}
    with (
        suppress(FileNotFoundError),
        subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options
        ) as process,
    ):
        signal.alarm(START_S)  # ends this process if the window does not open
        try:
            assert process.stdout
            printed = next(filter(None, map(BOXES.search, process.stdout)), None)
            return (json.loads(printed[1]), screenshot()) if printed else ([], b"")
        finally:
            signal.alarm(0)
            os.killpg(process.pid, signal.SIGKILL)
    return [], b""


def screenshot() -> bytes:
    desktop = this_desktop()
    windows = desktop.snapshot().windows
    window = next(window for window in windows if (window.title or "").startswith("Labels"))
    return take_image(desktop, Subject(window=window)).content.data


def saved_windows(folder: Path, only: str) -> Iterator[Saved]:
    for file in sorted(folder.glob("*.json")):
        name, labels, other_words = json.loads(file.read_text(encoding="utf-8"))
        if only in name:
            yield Saved(name, file.with_suffix(".png"), [Label(*label) for label in labels], other_words)


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return the work's result, its seconds of processor time with its children's, and by the clock."""

    def processor() -> float:
        usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    before, started = processor(), time.perf_counter()
    result = work()
    return result, processor() - before, time.perf_counter() - started


def read(window: Saved, languages: str) -> Reading:
    lines, *ours = timed(partial(ocr.read_text_by_tesseract, window.image))
    argv = ["tesseract", str(window.image), "stdout", "--psm", "11", "-l", languages, "tsv"]
    environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    _, *plain = timed(partial(subprocess.run, argv, env=environment, capture_output=True, check=True))
    return Reading(window, lines, [ours[0], plain[0], ours[1], plain[1]])


def measure(windows: list[Saved], languages: str, must_list: bool) -> None:
    """Read each window with these languages, and print the counts and times."""
    change_environment(PEEKABOO_OCR_LANGUAGES=languages)
    print(f"\n### {languages}\n\n| window | found | processor s | plain | clock s | plain |", end="")
    print("\n|---|---|---|---|---|---|")
    counts: Counter[tuple[str, str]] = Counter()  # of group and result
    pressed, readings = [], []
    for window in windows:
        reading = read(window, languages)
        readings.append(reading)
        results = [reading.judge(label) for label in window.labels]
        seconds = " | ".join(f"{each:.2f}" for each in reading.seconds)
        print(f"| {window.name} | {results.count('found')} of {len(results)} | {seconds} |", flush=True)
        _, toolkit, theme, scale = window.name.split()
        for label, result in zip(window.labels, results):
            groups = "all", toolkit, f"{theme} theme", f"scale {scale}", label.language, label.kind
            counts.update((group, result) for group in groups)
            if must_list and result != "found":
                print(f"  {result}: {label.text!r}, {label.kind}, {label.language}, {label.box}")
        pressed += [f"{text!r} in {window.name}" for text in window.other_words if reading.presses(text)]
    print("\n| group | found | wrong place | missed |\n|---|---|---|---|")
    for group in dict.fromkeys(group for group, _ in sorted(counts)):
        found, wrong, missed = (counts[group, result] for result in ("found", "wrong", "missed"))
        print(f"| {group} | {found} of {found + wrong + missed} | {wrong} | {missed} |")
    others = sum(len(window.other_words) for window in windows)
    print(f"\n{len(pressed)} of {others} other words would be pressed: {', '.join(pressed) or '-'}")
    ours, plain, our_clock, clock = map(sum, zip(*(reading.seconds for reading in readings)))
    print(f"Processor time {ours:.1f} s, {ours / plain:.2f} times plain tesseract's {plain:.1f} s; ", end="")
    print(f"by the clock {our_clock:.1f} s, {our_clock / clock:.2f} times {clock:.1f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--save", type=Path, help="keep the screenshots and the labels' places in this folder"
    )
    parser.add_argument("--from", type=Path, dest="source", help="measure a folder that --save has filled")
    parser.add_argument(
        "--languages", action="append", help="such as eng+deu; default: one, two, and all six"
    )
    parser.add_argument("--only", default="", help="only windows with this in their name: `tk dark`")
    parser.add_argument("--list", action="store_true", help="print each label that is not found")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.source and not options.inside:
        argv = [sys.executable, str(ROOT / "peekaboo_min" / "__main__.py"), "desktop", "--size", "2400x1800"]
        os.execv(argv[0], [*argv, "--", sys.executable, *sys.argv, INSIDE])
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.source or options.save or Path(temporary)
        if not options.source:
            save_windows(folder, options.only)
        windows = list(saved_windows(folder, options.only))
        # otherwise each label would start tesseract to list the languages
        ocr.text_languages = lru_cache(ocr.text_languages)
        for languages in options.languages or ["eng", "eng+deu", "+".join(languages_of_words())]:
            ocr.text_languages.cache_clear()
            measure(windows, languages, options.list)
    return 0


if __name__ == "__main__":
    sys.exit(main())
