"""What is read back from stored data: whatever stands in place of an entry, it is read, or refused in few words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dpopt as dp

pytestmark = pytest.mark.timeout(20)

STRANGE: dict[str, Any] = {
    "exponent": "1e999999999", "small exponent": "1e-999999999", "large": "1e3999", "digits": "9" * 20_000,
    "integer": 10**5000, "text": "x" * 10**5, "long list": [1] * 10_000, "long text list": ["1e999999999"] * 10_000,
    "lists": [[[]]] * 3, "mapping": {"a": 1}, "list of long integers": [10**5000], "none": None, "truth": True,
}  # fmt: skip
STORED: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "key table": (dp.KeyTable.from_dict, dp.KeyTable(-1, (1, 2, 1), 4).to_dict()),
    "pmf": (dp.Pmf.from_dict, dp.Pmf(-1, (1, 2, 1)).to_dict()),
    "pmf with tails": (dp.Pmf.from_dict, dp.laplace(3).pmf.to_dict()),
    "selection": (dp.TopK.from_dict, dp.noisy_top_k([9, 5, 3, 1], 2, 1).to_dict()),
}


def replaced(data: Any, value: Any) -> Iterator[Any]:
    """The data with one entry, or one entry of a list or mapping in it, in place of which the value stands."""
    yield value
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        for entry in replaced(data[key], value):
            changed = data.copy()
            changed[key] = entry
            yield changed


@pytest.mark.slow
@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("name", STORED)
def test_a_strange_entry_is_read_or_refused_in_few_words(name: str, strange: str) -> None:
    read, data = STORED[name]
    assert type(read(data)).__name__ in ("KeyTable", "Pmf", "TopK")
    for changed in replaced(data, STRANGE[strange]):
        try:
            read(changed)
        except dp.InputError as error:
            assert len(str(error)) <= 400  # an entry may as well be legal


@pytest.mark.parametrize("cell", ["1e999999999", "9" * 20_000, "1e3999", "x" * 10_000, "1" * 4300])
@pytest.mark.parametrize("column", range(3))
def test_a_strange_cell_of_a_table_is_read_or_refused_in_few_words(cell: str, column: int) -> None:
    cells = ["0", "4", "4"]
    cells[column] = cell
    try:
        dp.KeyTable.from_csv(f"noise,count,cumulative\n{','.join(cells)}\n")
    except dp.InputError as error:
        assert len(str(error)) <= 400
    else:
        assert column == 0 and cell == "1e3999"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tails": "x"}, "tails: must be a mapping"), ({"tails": {"left": "1/2"}}, "tails: lacks the entry 'period'"),
        ({"weights": 3}, "weights: must be a list"), ({"weights": "12"}, "weights: must be a list"),
    ],
)  # fmt: skip
def test_a_pmf_that_is_none_says_why(change: dict[str, Any], said: str) -> None:
    with pytest.raises(dp.InputError, match=said):
        dp.Pmf.from_dict(dp.Pmf(-1, (1, 2, 1)).to_dict() | change)
    with pytest.raises(dp.InputError, match="pmf: lacks the entry 'weights'"):
        dp.Pmf.from_dict({"start": "0"})
