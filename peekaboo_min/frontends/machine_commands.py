"""Commands about this machine, its models and its mail; the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, Optional

from ..ai.client import analyze_file
from ..automation.policy import stop_file
from ..core.models import Result
from ..core.settings import VARIABLES, settings_with_env_file
from ..desktop.macos.swift_helper import build_helper
from ..desktop.select import this_desktop
from ..integrations.gmail_oauth import gmail_folder, gmail_login
from ..integrations.peekaboo_cli import run_peekaboo_in_shell
from ..system.files import log_file, remove_all, state_folder, sweep, temporary_folder
from .arguments import Parameter, read_signature
from .capture_tools import AnalyzeType
from .client_config import client_configuration
from .doctor import doctor_result, initial_status, machine_data, permissions_data, permissions_result
from .tools import TOOLS, Tool


def server_status_command() -> Result:
    """Shows the version, the AI providers and the permissions that are granted. `list server_status` and
    `list permissions` are the same.

    Example: peekaboo-min list server_status --json-output
    """
    granted = permissions_data(this_desktop().permissions())
    lines = "\n".join(
        f"{name}: {'granted' if is_granted else 'NOT granted'}" for name, is_granted in granted.items()
    )
    return Result(f"{initial_status().strip()}\n{lines}", {"permissions": granted, **machine_data()})


def permissions_command() -> Result:
    """Shows each permission: whether it is granted, which application needs it, how to grant it. Exits 0,
    11, 12 or 13.

    Example: peekaboo-min permissions
    """
    return permissions_result(this_desktop())


def analyze_command(
    image_path: Annotated[str, "the image file: .png, .jpg or .webp"],
    question: Annotated[str, "what you want to know about it"],
    provider: Annotated[
        Optional[AnalyzeType], "default auto: the first one of PEEKABOO_AI_PROVIDERS that is operational"
    ] = None,
    model: Annotated[Optional[str], "default: the configured one"] = None,
) -> Result:
    """Asks a configured model about an image file. Keys may be in a file .env in this folder.

    Example: peekaboo-min analyze shot.png "What does it say?"
    """
    settings_with_env_file(Path.cwd())
    return analyze_file(this_desktop(), image_path, question, provider, model)


def exec_command(
    args: Annotated[list[str], "the arguments after `peekaboo`"],
    cwd: Annotated[Optional[str], "working folder; default: a temporary one"] = None,
    timeout_seconds: Annotated[
        float, "seconds until it is killed with all that it started; default 120"
    ] = 120,
    max_attachments: Annotated[int, "how many of the images that it leaves are named; default 8"] = 8,
) -> Result:
    """Runs the Peekaboo command line: PEEKABOO_CLI_PATH, else `peekaboo`, else this one; names the images
    that it leaves.

    Example: peekaboo-min exec -- image --app Safari --path .
    """
    return run_peekaboo_in_shell(this_desktop(), args, cwd, timeout_seconds, max_attachments)


def doctor_command(
    compile: Annotated[bool, "build the Swift helper for mouse and keyboard now (macOS)"] = False,
) -> Result:
    """Checks that everything needed is here: programs, the display, folders, permissions; says what is
    missing and how to get it.

    Example: peekaboo-min doctor
    """
    if compile and this_desktop().name == "macos":
        build_helper(is_forced=True)
    return doctor_result()


def clean_command(
    all: Annotated[
        bool, "also the state folder, the log and Gmail's token: all that we left outside your own folders"
    ] = False,
) -> Result:
    """Deletes every image and record in our temporary folder that is not in use. Files saved to a path of
    your choice stay. With --all, to uninstall, it also deletes everything else that we left in this account.

    Example: peekaboo-min clean
    """
    if all:
        return _clean_all()
    count = sweep(0)
    return Result(f"deleted {count} file(s) in {temporary_folder()}", {"deleted": count})


def _clean_all() -> Result:
    """What a user put into our folders stays: the stop file, which must not end by itself, and the client of
    Gmail.
    """
    log = log_file()
    kept = [path for path in (stop_file(), gmail_folder() / "credentials.json") if path.exists()]
    others = [gmail_folder() / "token.json", log, log.with_name(f"{log.name}.1")]
    folders = [str(temporary_folder()), str(state_folder())]
    staying = list(map(str, remove_all(kept, others)))
    text = f"deleted {', '.join(folders)} and {log}"
    if staying:
        text += f", but for what is yours or in use: {', '.join(staying)}"
    runs = "folders of agent runs (peekaboo-run-*) and logs/agent.log lie where you started the agents"
    return Result(text, {"folders": folders, "log": str(log), "kept": staying}, messages=(runs,))


def config_command(
    client: Annotated[
        Literal["claude-code", "claude-desktop", "codex", "cursor", "gemini", "vscode"], "the MCP client"
    ],
    env: Annotated[
        Optional[list[str]],
        "the name of a variable that the server gets too, with the value that it has here; repeatable",
    ] = None,
) -> Result:
    """Prints the configuration with which an MCP client starts this installation; on stderr, where to put it.

    Example: peekaboo-min config claude-desktop
    """
    return client_configuration(client, env or ())


def tools_command() -> Result:
    """Prints the reference of all MCP tools, as Markdown.

    Example: peekaboo-min tools > TOOLS.md
    """
    reference = tool_reference()
    return Result(reference, {"markdown": reference})


def gmail_login_command() -> Result:
    """Authorizes send_email to use your Gmail account: prints an address to open, waits for your consent,
    saves the token.

    Needs credentials.json (an OAuth client of the kind Desktop app) in the folder that PEEKABOO_GMAIL_FOLDER
    names.

    Example: peekaboo-min gmail-login
    """
    return gmail_login()


def tool_reference() -> str:
    """Every tool with its parameters, as Markdown; also what this machine does not offer."""
    return "\n\n".join(_tool_section(tool) for tool in TOOLS)


def _tool_section(tool: Tool) -> str:
    signature = read_signature(tool.function)
    description = " ".join(signature.description.split())
    rows = [
        f"| `{each.name}` | {_type_name(each)} | {_default(each)} | {_cell(each.help)} |"
        for each in signature.parameters
    ]
    table = ["", "| parameter | type | default | meaning |", "|---|---|---|---|", *rows] if rows else []
    return "\n".join([f"#### `{tool.name}`", "", description, *table])


def _type_name(parameter: Parameter) -> str:
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    choices = ", ".join(f"`{choice}`" for choice in parameter.choices)
    name = choices or names.get(parameter.type_, "object")
    return f"list of {name}" if parameter.is_list else name


def _default(parameter: Parameter) -> str:
    if parameter.is_required:
        return "required"
    return "" if parameter.default is None else f"`{json.dumps(parameter.default)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def variable_reference() -> str:
    """Every environment variable that is read, as a Markdown table."""
    rows = [
        f"| `{each.name}` | {_cell(str(each.default or ''))} | {_cell(each.help)} |"
        for each in VARIABLES.values()
    ]
    return "\n".join(["| variable | default | what it does |", "|---|---|---|", *rows])
