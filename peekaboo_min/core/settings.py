"""Environment variables, read once into a frozen Settings."""

# no `annotations` from __future__: with it, NamedTuple compiles the hint of each field, which is slow
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from .errors import PeekabooError, file_errors, invalid
from .text import seconds_text

# pino's names, as the specification demands, with Python's numbers; the last name of a number is logged
LOG_LEVELS = {"trace": 10, "debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40, "fatal": 50}
_BOOLEANS = {"1": True, "true": True, "yes": True, "on": True}
_BOOLEANS.update({"0": False, "false": False, "no": False, "off": False})

# The variables that a `.env` in the working folder may set. No addresses: a downloaded folder must not
# redirect screenshots.
_ENV_FILE_NAMES = (
    *("GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LOG_LEVEL"),
    *("SCREENSHOT_PATH", "KEYNOTE_THEME", "KEYNOTE_DOCUMENT_MODE"),
)
_ENV_LINE = r"""\s*(?:export\s+)?(\w+)\s*=(?:\s*"([^"]*)"|\s*'([^']*)'|(.*?)(?:\s#.*)?$)"""


class Variable(NamedTuple):
    """The environment variable of a setting; `alias` is read if `name` is unset or empty."""

    default: Any  # has the type of the setting
    name: str
    help: str
    alias: str = ""

    @property
    def is_secret(self) -> bool:
        return self.name.endswith("_KEY")

    def name_in(self, environ: Mapping[str, str]) -> str:
        """Return the name to read: the alias, unless the variable itself has a value."""
        # an empty variable counts as unset: `PEEKABOO_TTL_SECONDS= peekaboo-min`
        return self.name if environ.get(self.name, "").strip() else self.alias


class Settings(NamedTuple):
    """The settings from the environment. Its repr contains no secrets.

    Each field is annotated with its type, its variable, the variable's help, and an alias if it has one.
    """

    # fmt: off
    ai_providers: Annotated[str, "PEEKABOO_AI_PROVIDERS",
        "models for `analyze`, in order of preference: `ollama/qwen3-vl:8b,openai/gpt-5.4-mini` or `ocr`; "
        "if unset, `analyze` fails with AI_NOT_CONFIGURED"] = ""
    openai_key: Annotated[str, "OPENAI_API_KEY", "key for `openai`"] = ""
    anthropic_key: Annotated[str, "ANTHROPIC_API_KEY", "key for `anthropic`"] = ""
    gemini_key: Annotated[str, "GEMINI_API_KEY", "key for `gemini`", "GOOGLE_API_KEY"] = ""
    ollama_base_url: Annotated[str, "PEEKABOO_OLLAMA_BASE_URL",
        "address of Ollama"] = "http://localhost:11434"
    openai_base_url: Annotated[str, "OPENAI_BASE_URL",
        "address of an OpenAI API"] = "https://api.openai.com/v1"
    gemini_base_url: Annotated[str, "GEMINI_BASE_URL",
        "address of a Gemini API"] = "https://generativelanguage.googleapis.com"
    anthropic_base_url: Annotated[str, "ANTHROPIC_BASE_URL",
        "address of an Anthropic API"] = "https://api.anthropic.com"
    ai_timeout_s: Annotated[float, "PEEKABOO_AI_TIMEOUT",
        "seconds for a model's answer, retries included"] = 120.0
    ai_max_tokens: Annotated[int, "PEEKABOO_AI_MAX_TOKENS", "tokens for an answer, thinking included"] = 8192
    ai_grid: Annotated[str, "PEEKABOO_AI_GRID",
        "`pixels` or `1000`: the model's grid; unset: by its name"] = ""

    tools: Annotated[str, "PEEKABOO_TOOLS",
        "MCP tools to offer, by group or name: `capture,click`; unset: all"] = ""
    always_load: Annotated[bool, "PEEKABOO_ALWAYS_LOAD",
        "`0`: do not ask Claude Code to load the tools of the loop at its start"] = True
    is_read_only: Annotated[bool, "PEEKABOO_READONLY",
        "`1`: refuse all acts, hide the acting MCP tools"] = False
    allow_apps: Annotated[str, "PEEKABOO_ALLOW_APPS",
        "only act on these apps (name or bundle id); `*`: any text"] = ""
    deny_apps: Annotated[str, "PEEKABOO_DENY_APPS",
        "never act on these apps (name or bundle id); `*`: any text"] = (
        "1Password*,com.1password.*,Bitwarden*,com.bitwarden.*,LastPass*,Dashlane*,KeePass*,*.KeePass*,"
        "Enpass*,Seahorse*,*.seahorse*,gcr-prompter*,pinentry*,Keychain Access,com.apple.keychainaccess,"
        "Passwords,com.apple.Passwords"
    )
    stop_file: Annotated[str, "PEEKABOO_STOP_FILE",
        "while this file exists, all acts are refused; unset: STOP in the state folder"] = ""
    record_folder: Annotated[str, "PEEKABOO_RECORD",
        "keep each act in this folder, with screenshots (`report`)"] = ""
    may_focus_by_click: Annotated[bool, "PEEKABOO_SAFE_CLICK",
        "`1`: may click title bars to raise windows"] = False
    may_switch_input: Annotated[bool, "PEEKABOO_SWITCH_INPUT",
        "`1`: switch from an input method to a layout while typing or pressing a character's key "
        "(macOS)"] = False

    default_save_path: Annotated[str, "PEEKABOO_DEFAULT_SAVE_PATH", "where `image` saves without a path"] = ""
    ttl_seconds: Annotated[int, "PEEKABOO_TTL_SECONDS",
        "seconds to keep a temporary image; `0`: for ever"] = 600
    log_file: Annotated[str, "PEEKABOO_LOG_FILE",
        "the server's log; unset: `peekaboo-mcp.log` in the system's temporary folder"] = ""
    log_level: Annotated[str, "PEEKABOO_LOG_LEVEL",
        "`trace`, `debug`, `info`, `warn`, `error` or `fatal`", "LOG_LEVEL"] = "info"
    logs_to_console: Annotated[bool, "PEEKABOO_CONSOLE_LOGGING",
        "`true`: log to stderr as well", "PEEKABOO_MCP_CONSOLE_LOGGING"] = False
    cli_path: Annotated[str, "PEEKABOO_CLI_PATH",
        "another command line for `image`, `list`, `peekaboo_exec`"] = ""

    keynote_theme: Annotated[str, "KEYNOTE_THEME", "the theme of a new Keynote document"] = "White"
    keynote_document_mode: Annotated[str, "KEYNOTE_DOCUMENT_MODE", "or `always_new`"] = "reuse_or_create"
    screenshot_path: Annotated[str, "SCREENSHOT_PATH", "where `screenshot_slide` saves without a path"] = ""
    agent_log: Annotated[str, "PEEKABOO_AGENT_LOG",
        "the Keynote agent's log; the agent sets it for its server"] = ""
    gmail_folder: Annotated[str, "PEEKABOO_GMAIL_FOLDER",
        "the folder of Gmail's two files; unset: `peekaboo_min/gmail` in the user's data folder"] = ""
    gmail_base_url: Annotated[str, "PEEKABOO_GMAIL_BASE_URL",
        "the address of Gmail; for tests"] = "https://gmail.googleapis.com"

    ocr_languages: Annotated[str, "PEEKABOO_OCR_LANGUAGES",
        "languages of tesseract, best first: `eng+deu`; unset: at most 5 of those installed, yours first; "
        "a Mac detects the language itself"] = ""
    desktop: Annotated[str, "PEEKABOO_DESKTOP", "`macos` or `x11`; unset: by this machine"] = ""
    bin_dir: Annotated[str, "PEEKABOO_BIN_DIR", "the only folder to search for programs; for tests"] = ""
    x_display: Annotated[str, "DISPLAY", "the X server, on Linux"] = ""
    x_authority: Annotated[str, "XAUTHORITY", "the X server's authority file; unset: `~/.Xauthority`"] = ""
    wayland_display: Annotated[str, "WAYLAND_DISPLAY",
        "if set, a warning says that only X11 windows are visible"] = ""
    locale: Annotated[str, "LC_ALL", "the user's language, for text recognition on Linux", "LANG"] = ""
    data_home: Annotated[str, "XDG_DATA_HOME", "on Linux, the parent of Gmail's folder"] = "~/.local/share"
    state_home: Annotated[str, "XDG_STATE_HOME",
        "on Linux, the parent of the state folder"] = "~/.local/state"
    # fmt: on

    def __repr__(self) -> str:
        values = zip(VARIABLES.values(), self)
        shown = {v.name: value for v, value in values if not v.is_secret and value != v.default}
        return f"Settings({shown})"


VARIABLES = {  # by the names of their fields
    field: Variable(Settings._field_defaults[field], *annotated.__metadata__)
    for field, annotated in Settings.__annotations__.items()
}


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Read settings from a mapping. Raises INVALID_ARGUMENT for a value of the wrong type."""
    values: dict[str, Any] = {}
    for field, variable in VARIABLES.items():
        name = variable.name_in(environ)
        if text := environ.get(name, "").strip():
            values[field] = _convert(name, text, variable.default)
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
    wanted = "1 or 0" if isinstance(default, bool) else "0 or a positive number"
    raise invalid(f"the environment variable {name} is {text[:40]!r}", f"set it to {wanted}, or unset it")


_env_file_values: dict[str, str] = {}


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the settings of this process."""
    set_here = {name: value for name, value in os.environ.items() if value.strip()}
    hidden = {variable.name for variable in VARIABLES.values() if variable.alias in set_here}
    return read_settings({**{n: v for n, v in _env_file_values.items() if n not in hidden}, **set_here})


def image_lifetime() -> str:
    """Format how long a temporary image is kept: `for 10 minutes`."""
    seconds = settings().ttl_seconds
    if not seconds:
        return "for ever"
    is_in_minutes = seconds >= 120 and seconds % 60 == 0
    return f"for {seconds // 60} minutes" if is_in_minutes else f"for {seconds_text(seconds)}"


def ignored_variables() -> dict[str, str]:
    """Map each variable that has no effect to the reason. A misspelt policy would protect nothing."""
    known = {name for variable in VARIABLES.values() for name in (variable.name, variable.alias)}
    unread = "has no effect: there is no such variable; the README lists all of them"
    ignored = {
        name: unread for name in sorted(os.environ) if name.startswith("PEEKABOO_") and name not in known
    }
    level = settings().log_level
    if level.lower() not in LOG_LEVELS:
        name = VARIABLES["log_level"].name_in(os.environ)
        ignored[name] = f"{level[:40]!r} is not one of {', '.join(LOG_LEVELS)}; info is used"
    return ignored


def user_language() -> str:
    """Return the language of the user's locale, such as `de`; empty if it has none."""
    return re.split("[_.@]", settings().locale)[0]


def platform_name() -> str:
    """Return `macos` or `x11`: PEEKABOO_DESKTOP, or this machine's platform. Raises INVALID_ARGUMENT."""
    name = settings().desktop.lower() or ("macos" if sys.platform == "darwin" else "x11")
    if name not in ("macos", "x11"):
        raise invalid(f"PEEKABOO_DESKTOP is {name[:40]!r}", "set it to macos or x11")
    return name


def settings_with_env_file() -> Settings:
    """Add `.env` of the working folder to the settings of this process, and return them.

    The environment takes precedence. Only keys and the Keynote agent's variables are read. Call this for
    shell commands, never in the server. Raises FILE_IO_ERROR.
    """
    forget_environment()
    _env_file_values.update(_read_env_file(Path(".env")))
    return settings()


def _read_env_file(path: Path) -> dict[str, str]:
    """Read `NAME=value` lines with a shell's quotes, `export` and comments; expand nothing."""
    if not os.path.isfile(path):
        return {}
    with file_errors(path):
        lines = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    matches = [match for match in (re.match(_ENV_LINE, line) for line in lines) if match]
    return {match[1]: match[match.lastindex or 1].strip() for match in matches if match[1] in _ENV_FILE_NAMES}


def without_secrets(text: str) -> str:
    """Replace every API key with `***`, for messages and logs: an endpoint may repeat its key.

    Leave keys of less than 8 characters, such as a local server's: they may be part of any text. Parse a
    reply before you call this.
    """
    try:
        values = zip(VARIABLES.values(), settings())
    except PeekabooError:  # without readable settings, no key was sent
        return text
    secrets = [str(value) for variable, value in values if variable.is_secret and len(str(value)) >= 8]
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def child_environment() -> dict[str, str]:
    """Return the environment for child processes, with only absolute folders in PATH."""
    environment = dict(os.environ)
    environment.pop("PEEKABOO_CLI_PATH", None)  # it may name this program, which would call itself forever
    # a relative folder, or an empty PATH, would let a child run a program of the working folder
    folders = filter(os.path.isabs, environment.get("PATH", "").split(os.pathsep))
    environment["PATH"] = os.pathsep.join(folders) or os.defpath
    return environment


def change_environment(**values: str) -> None:
    """Set variables of this process and its children; an empty value removes one."""
    os.environ.update(values)
    for name, value in values.items():
        if not value:
            del os.environ[name]
    forget_environment()


def forget_environment() -> None:
    """Forget the cached settings, the .env file's values and the temporary folder."""
    import tempfile  # see system/files.py

    _env_file_values.clear()
    settings.cache_clear()
    tempfile.tempdir = None
