"""Families as float rows: one file a family, registered for it; `write` finds the right one."""

from dpopt.program.rows import expectation, hockey_stick, mirror, pairs, wasserstein  # noqa: F401  # they register
from dpopt.program.rows.base import Block, Folding, MassBlock, Place, rows_of, write

__all__ = ["Block", "Folding", "MassBlock", "Place", "rows_of", "write"]
