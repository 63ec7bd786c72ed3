"""The suite's own rule: what is skipped without a listed reason fails the session."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("def test_one(): pass", 0),
        ("import pytest\ndef test_one(): pytest.skip('cvxpy is not installed')", 1),
        ("import pytest\npytest.skip('highspy is not installed', allow_module_level=True)", 1),
        ("import pytest\npytest.importorskip('no_such_solver')\ndef test_one(): pass", 1),
        ("import pytest\n@pytest.mark.skipif(True, reason='root may write anywhere')\ndef test_one(): pass", 0),
        ("import pytest\n@pytest.mark.xfail\ndef test_one(): assert False", 0),
    ],
)
def test_a_skip_without_a_listed_reason_fails(tmp_path: Path, body: str, status: int, workers: int) -> None:
    shutil.copy(HERE / "conftest.py", tmp_path / "conftest.py")
    (tmp_path / "test_it.py").write_text(f"{body}\n")
    (tmp_path / "test_other.py").write_text("def test_other(): pass\n")  # no test at all is a failure of its own
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"-n{workers}", "--rootdir", ".", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stdout
    assert ("skipped tests count as failures" in done.stdout) == (status == 1)
