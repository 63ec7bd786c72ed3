"""What the room of the checker is: what it imports, and that each family is known to its own file alone."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dpopt.checker
from dpopt.checker.stated import FAMILIES, OBJECTIVES, Stated

ROOM = Path(dpopt.checker.__file__).parent
MODULES = sorted(module.name for module in pkgutil.walk_packages([str(ROOM)], "dpopt.checker."))
STANDS_ON = {
    "arithmetic", "balls", "distributions", "errors", "family", "lattice_function", "patience", "pmf", "reading",
    "record", "text", "work",
}  # fmt: skip
FOREIGN = {
    "numpy", "scipy", "cvxpy", "highspy", "pulp", "typer", "rich", "pandas", "matplotlib", "tomli_w",
}  # fmt: skip


def test_the_room_imports_numbers_and_laws_and_nothing_of_the_solving_path() -> None:
    code = (
        "import importlib, sys\n"
        f"for name in ['dpopt.checker', *{MODULES}]: importlib.import_module(name)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert set(MODULES) <= loaded and len(MODULES) > 20
    rooms = {name.split(".")[1] for name in loaded if name.startswith("dpopt.")}
    assert rooms - {"checker"} <= STANDS_ON
    assert {name.partition(".")[0] for name in loaded} & FOREIGN == set()


def test_verifying_loads_nothing_more(tmp_path: Path) -> None:
    """What a check imports on its way counts as well: a target's and a Wasserstein certificate, from their files."""
    import dpopt as dp

    questions = [
        dp.target(epsilon=1, delta="1/10", family="tablebuilder", then="min-variance"),
        dp.target(epsilon=1, delta="1/10", family="any", then="min-variance"),
        dp.wasserstein(input=dp.poisson(1), epsilon=1, sensitivity=2),
        dp.tablebuilder(D=2, V=1),
    ]
    files = []
    for i, question in enumerate(questions):
        files.append(str(tmp_path / f"{i}.json"))
        dp.solve(question).certificate.save(files[-1])
    code = (
        "import sys\nfrom dpopt.checker import verify\n"
        f"assert all(verify(file).holds for file in {files})\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {name.split(".")[1] for name in loaded if name.startswith("dpopt.")} - {"checker"} <= STANDS_ON
    assert {name.partition(".")[0] for name in loaded} & FOREIGN == set()


# --- each family in its own file -----------------------------------------------------------------------------------

# The questions that a target poses are ordinary problems, which it has to write.
WRITES_QUESTIONS = ROOM / "target.py"


def parts() -> dict[str, type[Stated]]:
    """Every constraint and objective by its kebab name."""
    return {**FAMILIES, **OBJECTIVES}


def home(part: type[Stated]) -> Path:
    """The file of a class."""
    return Path(str(importlib.import_module(part.__module__).__file__))


def strings(tree: ast.Module) -> Iterator[str]:
    """The strings of a file, docstrings apart."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    documents = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
            yield node.value


def identifiers(tree: ast.Module) -> Iterator[str]:
    """What a file names: variables, attributes, what it imports and defines."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "asname"):
            if isinstance(word := getattr(node, field, None), str):
                yield word


def test_no_family_is_dispatched_on_outside_its_own_file() -> None:
    """Neither its class nor its kebab name, whole or inside a longer string, occurs in any other file of the room."""
    assert len(FAMILIES) == 10 and len(OBJECTIVES) == 5
    files = [file for file in sorted(ROOM.rglob("*.py")) if file != WRITES_QUESTIONS]
    found = []
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        texts, names = set(strings(tree)), set(identifiers(tree))
        for name, part in parts().items():
            if file == home(part):
                assert name in texts and part.__name__ in names
            elif part.__name__ in names or name in texts or ("-" in name and any(name in text for text in texts)):
                found.append((file.name, name))
    assert found == [("inputs.py", "mean")]  # a parameter of the normal distribution


def test_no_file_asks_what_class_a_part_is() -> None:
    """`isinstance` is asked of JSON data only."""
    plain = {"Mapping", "str", "bytes", "list", "tuple", "int", "Fraction", "Path", "dict", "None"}
    asked = set()
    for file in sorted(ROOM.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                kinds = [n for n in ast.walk(node.args[1]) if isinstance(n, ast.Name | ast.Constant)]
                asked |= {n.id if isinstance(n, ast.Name) else str(n.value) for n in kinds}
    assert asked <= plain


def test_every_registered_part_is_in_a_file_of_its_kind() -> None:
    for table, folder in ((FAMILIES, "families"), (OBJECTIVES, "objectives")):
        for name, part in table.items():
            assert home(part).parent == ROOM / folder and part.name == name
