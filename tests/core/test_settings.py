"""Settings, read from environment variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

from peekaboo_min.core.settings import (
    VARIABLES,
    _read_env_file,
    ignored_variables,
    image_lifetime,
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
        ({"PEEKABOO_AI_TIMEOUT": "1.5"}, "ai_timeout_s", 1.5),
        ({"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": "k"}, "gemini_key", "k"),
        ({"GOOGLE_API_KEY": "g", "GEMINI_API_KEY": ""}, "gemini_key", "g"),
    ],
)
def test_settings_variable_is_converted_to_its_type(environ: dict[str, str], name: str, value: Any) -> None:
    read = read_settings(environ)
    others = read._replace(**{name: VARIABLES[name].default})
    assert (getattr(read, name), others) == (value, read_settings({}))


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
    (tmp_path / ".env").write_text(f"\ufeff{line}\n", encoding="utf-8")
    assert _read_env_file(tmp_path / ".env") == ({} if value is None else {"LOG_LEVEL": value})


def test_env_file_of_a_deleted_working_folder_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert settings_with_env_file() == settings()


LEVELS = "trace, debug, info, warning, warn, error, fatal"


@pytest.mark.parametrize(
    ("variables", "ignored"),
    [
        ({"LOG_LEVEL": "Info", "PEEKABOO_READONLY": "1"}, {}),
        ({"PEEKABOO_LOG_LEVEL": "bogus", "LOG_LEVEL": "info"}, {"PEEKABOO_LOG_LEVEL": "bogus"}),
        ({"LOG_LEVEL": "9"}, {"LOG_LEVEL": "9"}),
    ],
)
def test_unknown_log_level_is_reported(
    environment: Callable[..., None], variables: dict[str, str], ignored: dict[str, str]
) -> None:
    environment(**variables)
    expected = {name: f"{value!r} is not one of {LEVELS}; info is used" for name, value in ignored.items()}
    assert ignored_variables() == expected


@pytest.mark.parametrize(("seconds", "text"), [("119", "for 119 seconds"), ("120", "for 2 minutes")])
def test_lifetime_is_in_minutes_from_two(environment: Callable[..., None], seconds: str, text: str) -> None:
    environment(PEEKABOO_TTL_SECONDS=seconds)
    assert image_lifetime() == text
