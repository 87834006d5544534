"""The parallel test runner: the counts in its last line, and its timeout."""

from __future__ import annotations

from pathlib import Path

import pytest
import side_by_side

MIXED = """
import pytest
def test_passes(): pass
def test_fails(): assert 0
@pytest.fixture
def broken(): raise ValueError
def test_has_a_broken_fixture(broken): pass
def test_is_skipped(): pytest.skip("not here")
"""


def test_side_by_side_counts_every_outcome_in_the_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "test_mixed.py").write_text(MIXED)
    (tmp_path / "test_crashes.py").write_text("import os\ndef test_a(): os._exit(3)\n")
    (tmp_path / "test_good.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    (tmp_path / "test_none.py").write_text("")
    monkeypatch.setattr(side_by_side, "TESTS", tmp_path)
    assert side_by_side.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "3 passed, 3 failed, 1 skipped"  # an error and a crash are failures
    assert lines[-2] == "FAILED: test_crashes.py, test_mixed.py"
    for name in ("test_crashes.py", "sub/test_mixed.py"):
        (tmp_path / name).unlink()
    assert side_by_side.main() == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["all passed", "2 passed, 0 failed"]


def test_side_by_side_ends_a_file_that_hangs(tmp_path: Path) -> None:
    path = tmp_path / "test_hangs.py"
    path.write_text("import signal\ndef test_a(): signal.pause()\n")
    run = side_by_side.run_file(path, tmp_path, longest_s=5)
    assert (run.has_passed, run.outcomes) == (False, {"failed": 1})
    assert run.output.endswith("ended after 5 s")
