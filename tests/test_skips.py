"""The suite's own rule: what is skipped without a listed reason fails the session."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


PASSES = "def test_one(): pass"
LEFT_OUT = [
    "import pytest\ndef test_one(): pytest.skip('cvxpy is not installed')",
    "import pytest\npytest.skip('highspy is not installed', allow_module_level=True)",
    "import pytest\npytest.importorskip('no_such_solver')\ndef test_one(): pass",
]
ALLOWED = [
    "import pytest\n@pytest.mark.skipif(True, reason='root may write anywhere')\ndef test_one(): pass",
    "import pytest\n@pytest.mark.xfail\ndef test_one(): assert False",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status", "workers"),
    [
        *[(body, 0, 0) for body in (PASSES, *ALLOWED)],
        *[(body, 1, 0) for body in LEFT_OUT],
        *[(body, 1, 2) for body in LEFT_OUT[:2]],  # noted by a worker, and where it is collected
        (ALLOWED[0], 0, 2),
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
