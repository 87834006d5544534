"""Environment variables, read once into a frozen Settings."""

# without `annotations` from __future__, for which a NamedTuple compiles the hint of each of its fields
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from .errors import PeekabooError, file_errors, invalid

_BOOLEANS = {"1": True, "true": True, "yes": True, "on": True}
_BOOLEANS.update({"0": False, "false": False, "no": False, "off": False})

# What a `.env` in the working folder may set. Never an address: a downloaded folder must not redirect
# screenshots.
_ENV_FILE_NAMES = (
    *("GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LOG_LEVEL"),
    *("SCREENSHOT_PATH", "KEYNOTE_THEME", "KEYNOTE_DOCUMENT_MODE"),
)
_ENV_LINE = r"""\s*(?:export\s+)?(\w+)\s*=(?:\s*"([^"]*)"|\s*'([^']*)'|(.*?)(?:\s#.*)?$)"""


class Variable(NamedTuple):
    """Where a field of Settings is read from: environment variable `name`, or `alias` where that is unset."""

    name: str
    help: str
    default: Any = ""
    alias: str = ""
    is_secret: bool = False


_env: Any = Variable  # of whatever type the field is


class Settings(NamedTuple):
    """What the environment asks for. A field's type is its default's; secrets are not in its repr."""

    ai_providers: str = _env(
        "PEEKABOO_AI_PROVIDERS",
        "what `analyze` asks, in order of preference: `ollama/qwen3-vl:8b,openai/gpt-5.4-mini` or `ocr`; "
        "without it `analyze` fails with AI_NOT_CONFIGURED",
    )
    openai_key: str = _env("OPENAI_API_KEY", "key for `openai`", is_secret=True)
    anthropic_key: str = _env("ANTHROPIC_API_KEY", "key for `anthropic`", is_secret=True)
    gemini_key: str = _env("GEMINI_API_KEY", "key for `gemini`", "", "GOOGLE_API_KEY", is_secret=True)
    ollama_base_url: str = _env("PEEKABOO_OLLAMA_BASE_URL", "where Ollama listens", "http://localhost:11434")
    openai_base_url: str = _env("OPENAI_BASE_URL", "any server of OpenAI's API", "https://api.openai.com/v1")
    gemini_base_url: str = _env(
        "GEMINI_BASE_URL", "any server that speaks Gemini's REST", "https://generativelanguage.googleapis.com"
    )
    anthropic_base_url: str = _env(
        "ANTHROPIC_BASE_URL", "any server that speaks Anthropic's messages", "https://api.anthropic.com"
    )
    ai_timeout_s: float = _env("PEEKABOO_AI_TIMEOUT", "seconds for a model's answer, retries included", 120.0)
    ai_max_tokens: int = _env("PEEKABOO_AI_MAX_TOKENS", "tokens for an answer, thinking included", 8192)
    ai_grid: str = _env("PEEKABOO_AI_GRID", "`pixels` or `1000`: how a model counts; unset: by its name")

    tools: str = _env("PEEKABOO_TOOLS", "MCP tools to offer, groups or names: `capture,click`; unset: all")
    is_read_only: bool = _env("PEEKABOO_READONLY", "`1`: what acts is refused, and not offered by MCP", False)
    allow_apps: str = _env(
        "PEEKABOO_ALLOW_APPS", "names or bundle ids; when set, only these apps are acted on; `*`: any text"
    )
    deny_apps: str = _env(
        "PEEKABOO_DENY_APPS",
        "names or bundle ids that are never acted on; `*`: any text",
        "1Password*,com.1password.*,Bitwarden*,com.bitwarden.*,LastPass*,Dashlane*,KeePass*,*.KeePass*,"
        "Enpass*,Seahorse*,*.seahorse*,gcr-prompter*,pinentry*,Keychain Access,com.apple.keychainaccess,"
        "Passwords,com.apple.Passwords",
    )
    stop_file: str = _env(
        "PEEKABOO_STOP_FILE", "while it exists nothing acts; unset: STOP in the state folder"
    )
    may_focus_by_click: bool = _env(
        "PEEKABOO_SAFE_CLICK", "`1`: a window may be raised by a click in its title bar", False
    )

    default_save_path: str = _env("PEEKABOO_DEFAULT_SAVE_PATH", "where `image` saves when it gets no path")
    ttl_seconds: int = _env("PEEKABOO_TTL_SECONDS", "seconds that we keep an image; `0`: for ever", 600)
    log_file: str = _env(
        "PEEKABOO_LOG_FILE", "the server's log; unset: `peekaboo-mcp.log` in the system's temporary folder"
    )
    log_level: str = _env(
        "PEEKABOO_LOG_LEVEL", "`trace`, `debug`, `info`, `warn`, `error` or `fatal`", "info", "LOG_LEVEL"
    )
    logs_to_console: bool = _env(
        "PEEKABOO_CONSOLE_LOGGING", "`true`: log to stderr as well", False, "PEEKABOO_MCP_CONSOLE_LOGGING"
    )
    cli_path: str = _env("PEEKABOO_CLI_PATH", "another command line for `image`, `list`, `peekaboo_exec`")

    keynote_theme: str = _env("KEYNOTE_THEME", "theme of a new Keynote document", "White")
    keynote_document_mode: str = _env("KEYNOTE_DOCUMENT_MODE", "or `always_new`", "reuse_or_create")
    screenshot_path: str = _env("SCREENSHOT_PATH", "where `screenshot_slide` saves when its path is empty")
    agent_log: str = _env("PEEKABOO_AGENT_LOG", "the Keynote agent's log, set by it for its server")
    gmail_folder: str = _env(
        "PEEKABOO_GMAIL_FOLDER",
        "Gmail's two files; unset: `peekaboo_min/gmail` where programs keep their data",
    )
    gmail_base_url: str = _env(
        "PEEKABOO_GMAIL_BASE_URL", "where Gmail listens; for tests", "https://gmail.googleapis.com"
    )

    desktop: str = _env("PEEKABOO_DESKTOP", "`macos` or `x11`; unset: what this machine is")
    bin_dir: str = _env("PEEKABOO_BIN_DIR", "the only folder in which programs are looked for; for tests")
    x_display: str = _env("DISPLAY", "the X server, on Linux")
    x_authority: str = _env("XAUTHORITY", "the X server's authority file; unset: `~/.Xauthority`")
    wayland_display: str = _env("WAYLAND_DISPLAY", "when set, a warning says that only X11 windows are seen")
    data_home: str = _env("XDG_DATA_HOME", "on Linux, what holds Gmail's folder", "~/.local/share")
    state_home: str = _env("XDG_STATE_HOME", "on Linux, what holds our state folder", "~/.local/state")

    def __repr__(self) -> str:
        values = zip(VARIABLES.values(), self)
        shown = {v.name: value for v, value in values if not v.is_secret and value != v.default}
        return f"Settings({shown})"


VARIABLES: dict[str, Variable] = Settings._field_defaults  # by the names of the fields of Settings


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Settings from a mapping. Raises INVALID_ARGUMENT for a value that is not of its kind."""
    values: dict[str, Any] = {}
    for field, variable in VARIABLES.items():
        # An empty variable is an unset one: `PEEKABOO_TTL_SECONDS= peekaboo-min` must not fail.
        name = variable.name if environ.get(variable.name, "").strip() else variable.alias
        text = environ.get(name, "").strip()
        values[field] = _convert(name, text, variable.default) if text else variable.default
    return Settings(**values)


def _convert(name: str, text: str, default: Any) -> Any:
    if isinstance(default, str):
        return text
    with suppress(KeyError, ValueError):
        if isinstance(default, bool):
            return _BOOLEANS[text.lower()]
        number = type(default)(text)
        if 0 <= number < float("inf"):
            return number
    wanted = "1 or 0" if isinstance(default, bool) else "a number that is not negative"
    raise invalid(f"the environment variable {name} is {text[:40]!r}", f"set it to {wanted}, or unset it")


_env_file_values: dict[str, str] = {}


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process."""
    set_here = {name: value for name, value in os.environ.items() if value.strip()}
    return read_settings({**_env_file_values, **set_here})


def image_lifetime() -> str:
    """How long a temporary image is kept, for people: `for 10 minutes`."""
    seconds = settings().ttl_seconds
    minutes = seconds // 60 if seconds >= 120 and seconds % 60 == 0 else 0
    if not seconds:
        return "for ever"
    return f"for {minutes} minutes" if minutes else f"for {seconds} second{'s' if seconds > 1 else ''}"


def unknown_variables() -> list[str]:
    """The variables that are named like ours and that nobody reads: a misspelt policy protects nothing."""
    known = {name for variable in VARIABLES.values() for name in (variable.name, variable.alias)}
    return sorted(name for name in os.environ if name.startswith("PEEKABOO_") and name not in known)


def platform_name() -> str:
    """`macos` or `x11`: PEEKABOO_DESKTOP, else what this machine is. Raises INVALID_ARGUMENT."""
    name = settings().desktop.lower() or ("macos" if sys.platform == "darwin" else "x11")
    if name not in ("macos", "x11"):
        raise invalid(f"PEEKABOO_DESKTOP is {name[:40]!r}", "set it to macos or x11")
    return name


def settings_with_env_file(folder: Path) -> Settings:
    """The settings of this process from now on: what the environment leaves unset is read from `.env` in
    `folder`.

    For the commands of a person in that folder, never for the server; for keys and the Keynote agent's
    variables only. Raises FILE_IO_ERROR.
    """
    values = _read_env_file(folder / ".env")
    forget_environment()
    _env_file_values.update(values)
    return settings()


def _read_env_file(path: Path) -> dict[str, str]:
    """`NAME=value` lines: quotes, `export` and comments as shells have them, nothing expanded."""
    if not os.path.isfile(path):
        return {}
    with file_errors(path):
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    matches = [match for match in (re.match(_ENV_LINE, line) for line in lines) if match]
    return {match[1]: match[match.lastindex or 1].strip() for match in matches if match[1] in _ENV_FILE_NAMES}


def without_secrets(text: str) -> str:
    """The text with `***` for every key of the settings, in case an endpoint repeats what it was sent."""
    try:
        values = zip(VARIABLES.values(), settings())
    except PeekabooError:  # settings that cannot be read hold no key that was sent
        return text
    secrets = [str(value) for variable, value in values if variable.is_secret]
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def child_environment() -> dict[str, str]:
    """What a child process inherits: not PEEKABOO_CLI_PATH, which may be ourselves and call us for ever."""
    return {name: value for name, value in os.environ.items() if name != "PEEKABOO_CLI_PATH"}


def forget_environment() -> None:
    """Let the environment be read anew: the settings, without what a .env set, and the temporary folder."""
    import tempfile  # see system/files.py

    _env_file_values.clear()
    settings.cache_clear()
    tempfile.tempdir = None
