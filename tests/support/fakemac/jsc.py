"""Run a JXA script on the fake Mac in JavaScriptCore, the engine of a real Mac, instead of node."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any, Callable

from .world import post, settle

HERE = Path(__file__).resolve().parent
_ENCODINGS = {"latin1": "latin-1", "utf8": "utf-8", "utf16le": "utf-16-le"}


def run_in_jsc(folder: Path, environment: dict[str, str], source: str, *argv: str) -> str:
    """Return what the script's `run` returns."""

    def run_python(*words: str) -> None:
        subprocess.run([sys.executable, str(HERE / "run.py"), str(folder), *words], check=True, timeout=60)

    answers: dict[str, Callable[..., Any]] = {
        "start": lambda: {
            "folder": str(HERE), "source": source, "argv": argv, "environmentText": json.dumps(environment),
        },
        "stateText": lambda: json.dumps(settle(folder)),
        "postText": lambda text: post(folder, json.loads(text)),
        "sleep": lambda ms: time.sleep(max(0, ms) / 1000),
        "warn": sys.stderr.write,
        "read": lambda path: Path(path).read_bytes().decode("latin-1") if os.path.isfile(path) else None,
        "isThere": os.path.exists,
        "isFolder": os.path.isdir,
        "remove": lambda path: Path(path).unlink(missing_ok=True),
        "encode": lambda text, name: text.encode(_ENCODINGS[name], "surrogatepass").decode("latin-1"),
        "decode": lambda data, name: data.encode("latin-1").decode(_ENCODINGS[name], "replace"),
        "randomId": lambda: str(uuid.uuid4()).upper(),
        "runPython": run_python,
    }  # fmt: skip
    pipe = subprocess.PIPE
    command = ["jsc", str(HERE / "jsc.js")]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdin and child.stdout and child.stderr
        for line in child.stdout:
            if not line.startswith("["):
                raise RuntimeError(line + child.stdout.read())  # jsc prints exceptions to stdout
            name, *given = json.loads(line)
            if name == "end":
                child.kill()
                return str(given[0])
            print(json.dumps(answers[name](*given)), file=child.stdin, flush=True)
        raise RuntimeError(child.stderr.read())
