"""The first part of the single file: import the package from the strings that follow it."""

import _imp  # for source_hash: importlib.util would import more modules
import marshal
import os
import stat
import sys
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any, Optional

# Path in the package -> the line of this file on which its text begins, and the text.
SOURCES: dict[str, tuple[int, str]] = {}


class EmbeddedPackage:
    """A finder and loader for the modules in SOURCES; compiles only imported modules."""

    def __init__(self, single_file: str) -> None:
        self.single_file = single_file
        self._bytecode = _bytecode_folder()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        place = name.replace(".", "/")
        for source in (f"{place}/__init__.py", f"{place}.py"):
            if source in SOURCES:
                origin = os.path.join(self.single_file, source)
                spec = ModuleSpec(name, self, origin=origin, is_package=source.endswith("/__init__.py"))  # type: ignore[arg-type]
                spec.has_location = True
                return spec
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code(self._source_of(str(module.__file__))), module.__dict__)

    def get_data(self, path: str) -> bytes:
        return SOURCES[self._source_of(path)][1].encode("utf-8")

    def _source_of(self, path: str) -> str:
        return path[len(self.single_file) + 1 :]

    def _code(self, source: str) -> CodeType:
        """Compile a module with this file's name and line numbers, so that tracebacks show its source."""
        line, text = SOURCES[source]
        compiled = f"{sys.version}{sys.flags.optimize}{self.single_file}{line}{text}"
        key = _imp.source_hash(0, compiled.encode()).hex()
        kept = os.path.join(self._bytecode, key) if self._bytecode else ""
        try:
            with open(kept, "rb") as f:
                return marshal.loads(f.read())  # type: ignore[no-any-return]
        except (OSError, ValueError, EOFError, TypeError):
            pass  # not cached yet, or incomplete
        code = compile("\n" * (line - 1) + text, self.single_file, "exec", dont_inherit=True)
        if kept and not sys.dont_write_bytecode:
            _keep(kept, marshal.dumps(code))
        return code


def _bytecode_folder() -> str:
    """Return the bytecode folder below our state folder; empty unless only this user can write there."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join("~", ".local", "state")
    home = os.path.join("~", "Library", "Caches") if sys.platform == "darwin" else state
    ours = os.path.join(os.path.expanduser(home), "peekaboo_min")
    folder = os.path.join(ours, "bytecode")
    try:
        for path in (ours, folder):
            if not os.path.isdir(path) and not sys.dont_write_bytecode:
                os.makedirs(path, mode=0o700)
            status = os.lstat(path)
            if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode) or status.st_mode & 0o077:
                return ""  # others could have put code into it
    except OSError:
        return ""
    return folder


def _keep(path: str, data: bytes) -> None:
    fresh = f"{path}.{os.getpid()}"
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
            f.write(data)
        os.replace(fresh, path)
    except OSError:
        pass  # the next start compiles it again


def run_embedded_package() -> None:
    sys.meta_path.insert(0, EmbeddedPackage(os.path.abspath(__file__)))  # type: ignore[arg-type]
    from peekaboo_min.frontends.cli import start

    start()
