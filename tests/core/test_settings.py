"""Settings, read from environment variables."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable

import pytest
from samples import error_of

from peekaboo_min.core import settings as module
from peekaboo_min.core.settings import (
    VARIABLES,
    _read_env_file,
    read_settings,
    settings,
    settings_with_env_file,
)


@pytest.mark.parametrize(
    ("environ", "name", "value"),
    [
        ({}, "ttl_seconds", 600),
        ({"PEEKABOO_TTL_SECONDS": " 5 "}, "ttl_seconds", 5),
        ({"PEEKABOO_TTL_SECONDS": "0"}, "ttl_seconds", 0),
        ({"PEEKABOO_READONLY": "YES"}, "is_read_only", True),
        ({"PEEKABOO_READONLY": "off"}, "is_read_only", False),
        ({"PEEKABOO_ALWAYS_LOAD": "No"}, "always_load", False),
        ({"PEEKABOO_READONLY": "true"}, "is_read_only", True),
        ({"PEEKABOO_READONLY": "on"}, "is_read_only", True),
        ({"PEEKABOO_ALWAYS_LOAD": "False"}, "always_load", False),
        ({"PEEKABOO_AI_TIMEOUT": "1.5"}, "ai_timeout_s", 1.5),
        ({"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": " k "}, "gemini_key", "k"),
        ({"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": ""}, "gemini_key", "g"),
        ({"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": " "}, "gemini_key", "g"),
    ],
)
def test_settings_variable_is_converted_to_its_type(environ: dict[str, str], name: str, value: Any) -> None:
    read = read_settings(environ)
    others = read._replace(**{name: VARIABLES[name].default})
    assert (getattr(read, name), others) == (value, read_settings({}))


def test_settings_variable_of_a_wrong_value_is_an_error(environment: Callable[..., None]) -> None:
    wrong = {"TTL_SECONDS": "-1", "AI_MAX_TOKENS": "1.5", "AI_TIMEOUT": "inf", "READONLY": "2"}
    for name, value in wrong.items():
        assert f"PEEKABOO_{name} is '{value}'" in error_of(read_settings, {f"PEEKABOO_{name}": value}).message
    environment(PEEKABOO_TTL_SECONDS="soon")
    assert module.without_secrets("this") == "this", "the error can be logged"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("LOG_LEVEL=warn", "warn"),
        ("  export LOG_LEVEL = warn # a comment", "warn"),
        ("LOG_LEVEL='a # b' # c", "a # b"),
        ('LOG_LEVEL="a # b"', "a # b"),
        ("LOG_LEVEL=a#b  c's", "a#b  c's"),
        ("LOG_LEVEL= # nothing", ""),
        ("LOG_LEVEL=a b" + " " * 60_000 + "'", "a b" + " " * 60_000 + "'"),  # must not take minutes
        ("LOG_LEVEL=#a", "#a"),
        ("# LOG_LEVEL=a", None),
        ("OPENAI_BASE_URL=http://127.0.0.1:1", None),
    ],
)
def test_env_file_line_is_read_like_a_shell_line(tmp_path: Path, line: str, value: Any) -> None:
    (tmp_path / ".env").write_bytes(f"\ufeff{line}\n".encode() + b"# Latin-1: Gr\xfc\xdfe\n")
    assert _read_env_file(tmp_path / ".env") == ({} if value is None else {"LOG_LEVEL": value})


def test_env_file_of_a_deleted_working_folder_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert settings_with_env_file() == settings()
    assert _read_env_file(tmp_path) == {}, "a virtual environment may have this name"


def test_env_file_is_hidden_by_a_variable_or_its_alias_unless_it_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "GEMINI_API_KEY=abc\nOPENAI_API_KEY=def\nANTHROPIC_API_KEY=ghi\nKEYNOTE_THEME=Black"
    text += "\nKEYNOTE_DOCUMENT_MODE=always_new"
    (tmp_path / ".env").write_text(text)
    monkeypatch.chdir(tmp_path)
    for name, value in {"GOOGLE_API_KEY": "mine", "OPENAI_API_KEY": " ", "KEYNOTE_THEME": "White"}.items():
        monkeypatch.setenv(name, value)
    read = settings_with_env_file()
    assert (read.gemini_key, read.openai_key, read.anthropic_key) == ("mine", "def", "ghi")
    assert (read.keynote_theme, read.keynote_document_mode) == ("White", "always_new")
    module.forget_environment()
    assert settings().openai_key == ""
    monkeypatch.setenv("GOOGLE_API_KEY", " ")
    assert settings_with_env_file().gemini_key == "abc"


def test_child_gets_no_relative_folder_and_no_cli_path(environment: Callable[..., None]) -> None:
    environment(PATH=".:/usr/bin::bin:/bin", PEEKABOO_CLI_PATH="/a", KEPT="1")
    child = module.child_environment()
    assert (child["PATH"], child["KEPT"], "PEEKABOO_CLI_PATH" in child) == ("/usr/bin:/bin", "1", False)
    environment(PATH=".")
    assert module.child_environment()["PATH"] == os.defpath


def test_changed_environment_is_read_again(environment: Callable[..., None]) -> None:
    environment(LC_ALL="de_DE.UTF-8", PEEKABOO_DESKTOP="MacOS", OPENAI_API_KEY="sk-secret")
    environment(PEEKABOO_MCP_CONSOLE_LOGGING="1", PEEKABOO_LOG_LEVEL="WARN")
    assert module.ignored_variables() == {}
    assert (module.user_language(), module.platform_name()) == ("de", "macos")
    assert "sk-secret" not in repr(settings()) and "PEEKABOO_DESKTOP" in repr(settings())
    module.change_environment(LC_ALL="", PEEKABOO_DESKTOP="x11")
    assert (module.user_language(), module.platform_name(), "LC_ALL" in os.environ) == ("C", "x11", False)
    module.change_environment(PEEKABOO_DESKTOP="windows")
    assert "set it to macos or x11" in error_of(module.platform_name).hint
    environment(PEEKABOO_READ_ONLY="1", PEEKABOO_DENY="*", PEEKABOO_LOG_LEVEL="", LOG_LEVEL="loud")
    assert [*module.ignored_variables()] == ["PEEKABOO_DENY", "PEEKABOO_READ_ONLY", "LOG_LEVEL"]


@pytest.mark.parametrize("locale", ["de", "de.UTF-8", "de_DE", "de@euro"])
def test_language_is_the_first_part_of_the_locale(environment: Callable[..., None], locale: str) -> None:
    environment(LC_ALL=locale)
    assert module.user_language() == "de"


LIFETIMES = {"0": "ever", "1": "1 second", "60": "60 seconds", "120": "2 minutes", "150": "150 seconds"}


def test_lifetime_of_an_image_is_shown_in_whole_minutes(environment: Callable[..., None]) -> None:
    for seconds, shown in LIFETIMES.items():
        environment(PEEKABOO_TTL_SECONDS=seconds)
        assert module.image_lifetime() == f"for {shown}"
