"""The stopwatch: set up untimed, one verb timed, again and again."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

__all__ = ["Times", "fresh_interpreter", "measure"]

Verb = Callable[[], Any]

_CHILD = """
import sys
from time import perf_counter, process_time
wall, cpu = perf_counter(), process_time()
{statement}
print(perf_counter() - wall, process_time() - cpu, *sorted(sys.modules))
"""


@dataclass(frozen=True)
class Times:
    """Seconds of each repetition: on the wall, and of this process on all cores."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median wall seconds."""
        return median(self.wall)

    @property
    def least(self) -> float:
        """Least wall seconds: the repetition that others disturbed least."""
        return min(self.wall)

    @property
    def cpu_least(self) -> float:
        """Least processor seconds."""
        return min(self.cpu)

    @property
    def cpu_median(self) -> float:
        """Median processor seconds."""
        return median(self.cpu)


def measure(set_up: Callable[[], Verb], repeat: int) -> tuple[Times, Any]:
    """Time `repeat` verbs after one untimed warm-up, each with a set-up of its own; also what the last one returned."""
    set_up()()
    walls, cpus, result = [], [], None
    for _ in range(repeat):
        verb = set_up()
        result = None
        gc.collect()
        wall, cpu = perf_counter(), process_time()
        result = verb()
        walls.append(perf_counter() - wall)
        cpus.append(process_time() - cpu)
    return Times(tuple(walls), tuple(cpus)), result


def fresh_interpreter(statement: str, repeat: int) -> tuple[Times, frozenset[str]]:
    """Time a statement in new interpreters (a warm-up fills the file cache); also the modules it loaded."""
    walls, cpus, modules = [], [], frozenset[str]()
    for _ in range(repeat + 1):
        command = [sys.executable, "-c", _CHILD.format(statement=statement)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        wall, cpu, *names = done.stdout.split()
        walls.append(float(wall))
        cpus.append(float(cpu))
        modules = frozenset(names)
    return Times(tuple(walls[1:]), tuple(cpus[1:])), modules
