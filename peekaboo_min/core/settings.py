"""Environment variables, read once into a frozen Settings."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from .errors import ErrorCode, PeekabooError, invalid

_BOOLEANS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}

# What a `.env` in the working folder may set. Never an address: a downloaded folder must not redirect
# screenshots.
_ENV_FILE_NAMES = (
    "GEMINI_API_KEY",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "LOG_LEVEL",
    "SCREENSHOT_PATH",
    "KEYNOTE_THEME",
    "KEYNOTE_DOCUMENT_MODE",
)
_ENV_FILE_CAP = 64 * 1024
# No two neighbouring parts match the same text: a hostile line must not take minutes.
_ENV_LINE = (
    r"""\s*(?:export\s+)?(\w+)\s*="""
    r"""(?:\s*(?:"([^"]*)"|'([^']*)'|([^"'\s#]\S*(?:\s+[^\s#]\S*)*)))?"""
    r"""\s*(?:(?<=\s)#.*)?"""
)

# It names another command line, which may be our own: with it inherited, that would call itself for ever.
_NOT_FOR_CHILDREN = ("PEEKABOO_CLI_PATH",)


class Variable(NamedTuple):
    """Where a field of Settings is read from: environment variable `name`, or `alias` where that is unset."""

    name: str
    help: str
    default: Any = ""
    alias: str = ""
    is_secret: bool = False


_variable: Any = Variable  # of whatever type the field is


class Settings(NamedTuple):
    """What the environment asks for. A field's type is its default's; secrets are not in its repr."""

    ai_providers: str = _variable(
        "PEEKABOO_AI_PROVIDERS",
        "what `analyze` asks, in order of preference: `ollama/qwen3-vl:8b,openai/gpt-5.4-mini` or `ocr`; "
        "without it `analyze` fails with AI_NOT_CONFIGURED",
    )
    openai_key: str = _variable("OPENAI_API_KEY", "key for `openai`", is_secret=True)
    anthropic_key: str = _variable("ANTHROPIC_API_KEY", "key for `anthropic`", is_secret=True)
    gemini_key: str = _variable(
        "GEMINI_API_KEY",
        "key for `gemini` (`GOOGLE_API_KEY` is read too)",
        alias="GOOGLE_API_KEY",
        is_secret=True,
    )
    ollama_base_url: str = _variable(
        "PEEKABOO_OLLAMA_BASE_URL", "where Ollama listens", "http://localhost:11434"
    )
    openai_base_url: str = _variable(
        "OPENAI_BASE_URL", "any server that speaks OpenAI's chat completions", "https://api.openai.com/v1"
    )
    gemini_base_url: str = _variable(
        "GEMINI_BASE_URL", "any server that speaks Gemini's REST", "https://generativelanguage.googleapis.com"
    )
    anthropic_base_url: str = _variable(
        "ANTHROPIC_BASE_URL", "any server that speaks Anthropic's messages", "https://api.anthropic.com"
    )
    ai_timeout_s: float = _variable(
        "PEEKABOO_AI_TIMEOUT", "seconds a model may take to answer, retries included", 120.0
    )
    ai_max_tokens: int = _variable(
        "PEEKABOO_AI_MAX_TOKENS", "tokens that a model may write in one answer, its thinking included", 8192
    )
    ai_grid: str = _variable(
        "PEEKABOO_AI_GRID",
        "`pixels` or `1000`: the grid in which the agent's model says where to click; unset: by its name",
    )

    tools: str = _variable(
        "PEEKABOO_TOOLS",
        "the MCP tools to offer, groups or names: `capture,desktop` or `image,list`; unset: all",
    )
    is_read_only: bool = _variable(
        "PEEKABOO_READONLY", "`1`: whatever acts is refused, and not offered over MCP", False
    )
    allow_apps: str = _variable(
        "PEEKABOO_ALLOW_APPS",
        "names or bundle ids; when set, only these apps are acted on; `*` stands for any text",
    )
    deny_apps: str = _variable(
        "PEEKABOO_DENY_APPS",
        "names or bundle ids that are never acted on; `*` stands for any text",
        "1Password*,com.1password.*,Bitwarden*,com.bitwarden.*,LastPass*,Dashlane*,KeePass*,*.KeePass*,"
        "Enpass*,Seahorse*,*.seahorse*,gcr-prompter*,pinentry*,Keychain "
        "Access,com.apple.keychainaccess,Passwords,com.apple.Passwords",
    )
    stop_file: str = _variable(
        "PEEKABOO_STOP_FILE", "while this file exists nothing acts; unset: `STOP` in the state folder"
    )
    may_focus_by_click: bool = _variable(
        "PEEKABOO_SAFE_CLICK",
        "`1`: a window that cannot be raised otherwise may be clicked in its title bar",
        False,
    )

    default_save_path: str = _variable(
        "PEEKABOO_DEFAULT_SAVE_PATH", "where `image` saves when no path is asked; unset: our temporary folder"
    )
    ttl_seconds: int = _variable(
        "PEEKABOO_TTL_SECONDS", "how long an image in our temporary folder is kept; `0`: for ever", 600
    )
    log_file: str = _variable(
        "PEEKABOO_LOG_FILE", "the server's log; unset: `peekaboo-mcp.log` in the system's temporary folder"
    )
    log_level: str = _variable(
        "PEEKABOO_LOG_LEVEL",
        "`trace`, `debug`, `info`, `warn`, `error` or `fatal` (`LOG_LEVEL` is read too)",
        "info",
        alias="LOG_LEVEL",
    )
    logs_to_console: bool = _variable(
        "PEEKABOO_CONSOLE_LOGGING",
        "`true`: log to stderr as well (`PEEKABOO_MCP_CONSOLE_LOGGING` is read too)",
        False,
        alias="PEEKABOO_MCP_CONSOLE_LOGGING",
    )
    cli_path: str = _variable(
        "PEEKABOO_CLI_PATH",
        "another peekaboo command line for the MCP tools `image`, `list` and `peekaboo_exec`",
    )

    keynote_theme: str = _variable("KEYNOTE_THEME", "theme of a new Keynote document", "White")
    keynote_document_mode: str = _variable(
        "KEYNOTE_DOCUMENT_MODE", "`reuse_or_create` or `always_new`", "reuse_or_create"
    )
    screenshot_path: str = _variable(
        "SCREENSHOT_PATH", "where `screenshot_slide` saves when it gets an empty path"
    )
    agent_log: str = _variable(
        "PEEKABOO_AGENT_LOG",
        "the Keynote agent's log, which its server writes into as well; the agent sets it",
    )
    gmail_folder: str = _variable(
        "PEEKABOO_GMAIL_FOLDER",
        "holds `credentials.json` and `token.json`; unset: `gmail` in the state folder",
    )
    gmail_base_url: str = _variable(
        "PEEKABOO_GMAIL_BASE_URL", "where Gmail listens; for tests", "https://gmail.googleapis.com"
    )

    desktop: str = _variable("PEEKABOO_DESKTOP", "`macos` or `x11`; unset: what this machine is")
    bin_dir: str = _variable(
        "PEEKABOO_BIN_DIR", "the only folder in which programs are looked for; for tests"
    )
    x_display: str = _variable("DISPLAY", "the X server, on Linux")
    x_authority: str = _variable("XAUTHORITY", "the X server's authority file; unset: `~/.Xauthority`")
    wayland_display: str = _variable(
        "WAYLAND_DISPLAY", "when set, only X11 windows can be seen: a warning says so"
    )
    state_home: str = _variable(
        "XDG_STATE_HOME", "on Linux our state folder is `peekaboo_min` in here; unset: `~/.local/state`"
    )

    def __repr__(self) -> str:
        return f"Settings({changed_settings(self)})"

    @property
    def mac_state_folder(self) -> Path:
        return _home() / "Library" / "Caches" / "peekaboo_min"

    @property
    def xdg_state_folder(self) -> Path:
        home = Path(self.state_home) if self.state_home else _home() / ".local" / "state"
        return home / "peekaboo_min"


def _home() -> Path:
    """The user's home folder. Raises FILE_IO_ERROR for a user without one, as in some containers."""
    try:
        return Path.home()
    except RuntimeError as e:
        message = "this user has no home folder"
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, message, hint="set HOME to a folder of your own") from e


VARIABLES: dict[str, Variable] = Settings._field_defaults
"""By the names of the fields of Settings."""


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Settings from a mapping. Raises INVALID_ARGUMENT for a value that is not of its kind."""
    values: dict[str, Any] = {}
    for field, each in VARIABLES.items():
        # An empty variable is an unset one: `PEEKABOO_TTL_SECONDS= peekaboo-min` must not fail.
        name = each.name if environ.get(each.name, "").strip() else each.alias
        text = environ.get(name, "").strip()
        values[field] = _convert(name, text, each.default) if text else each.default
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
    return read_settings(
        {**_env_file_values, **{name: value for name, value in os.environ.items() if value.strip()}}
    )


def unknown_variables() -> list[str]:
    """The variables that are named like ours and that nobody reads: a misspelt policy protects nothing."""
    known = {name for each in VARIABLES.values() for name in (each.name, each.alias)}
    return sorted(name for name in os.environ if name.startswith("PEEKABOO_") and name not in known)


def platform_name() -> str:
    """`macos` or `x11`: PEEKABOO_DESKTOP, else what this machine is. Raises INVALID_ARGUMENT."""
    asked = settings().desktop.lower()
    if asked not in ("", "macos", "x11"):
        raise invalid(f"PEEKABOO_DESKTOP is {asked[:40]!r}", "set it to macos or x11")
    return asked or ("macos" if sys.platform == "darwin" else "x11")


def settings_with_env_file(folder: Path) -> Settings:
    """The settings of this process from now on: what the environment leaves unset is read from `.env` in
    `folder`.

    For the commands of a person in that folder, never for the server; for keys and the Keynote agent's
    variables only. Raises FILE_IO_ERROR.
    """
    _env_file_values.update(_read_env_file(folder / ".env"))
    forget_environment()
    return settings()


def _read_env_file(path: Path) -> dict[str, str]:
    """`NAME=value` lines: quotes, `export` and comments as shells have them, nothing expanded."""
    if not os.path.isfile(path):
        return {}
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = f.read(_ENV_FILE_CAP).lstrip("\ufeff").splitlines()
    except OSError as e:
        raise PeekabooError(
            ErrorCode.FILE_IO_ERROR,
            f"{path}: {e.strerror}",
            hint="make it readable, or run this in another folder",
        ) from e
    matches = (re.fullmatch(_ENV_LINE, line) for line in lines)
    found = [match for match in matches if match and match[1] in _ENV_FILE_NAMES]
    return {match[1]: match[2] or match[3] or match[4] or "" for match in found}


def changed_settings(read: Settings) -> dict[str, str]:
    """The variables with another value than the default, as text; of a secret only that it is set."""
    return {
        each.name: "(set)" if each.is_secret else str(value)
        for each, value in zip(VARIABLES.values(), read)
        if value != each.default
    }


def without_secrets(text: str) -> str:
    """The text with `***` for every key of the settings, in case an endpoint repeats what it was sent."""
    try:
        secrets = [str(value) for each, value in zip(VARIABLES.values(), settings()) if each.is_secret]
    except PeekabooError:  # settings that cannot be read hold no key that was sent
        return text
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


@lru_cache(maxsize=1)
def child_environment() -> dict[str, str]:
    """What a child process inherits."""
    return {name: value for name, value in os.environ.items() if name not in _NOT_FOR_CHILDREN}


def search_path() -> list[str]:
    """The absolute folders of PATH: nothing is executed because it lies in the working folder."""
    return [
        folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(folder)
    ]


def forget_environment() -> None:
    """Let the environment be read anew: the settings, what children inherit, the temporary folder."""
    settings.cache_clear()
    child_environment.cache_clear()
    tempfile.tempdir = None
