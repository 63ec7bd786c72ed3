"""Custom objectives: the checker cannot know what such a type means, and takes its stored cost on trust."""

from __future__ import annotations

from dataclasses import dataclass

from dpopt.checker.objectives.expected_cost import Cost
from dpopt.checker.reading import brief, read_function, read_object, reject

__all__ = ["TrustedCost"]


@dataclass(frozen=True)
class TrustedCost(Cost):
    """The expectation of a stored cost, of a type that no file registers."""

    type: str

    @classmethod
    def of(cls, kind: str, source: object, where: str) -> TrustedCost:
        """The stored cost of a type."""
        data = read_object(source, where, ("term", "function"))
        if data["term"] != "cost":
            reject(f"{where}.term", f"must be 'cost', not {brief(data['term'])}")
        return cls(read_function(data["function"], f"{where}.function"), kind)

    @property
    def kind(self) -> str:
        """The custom type."""
        return self.type
