"""What tools return, as text: the same words in every process."""

import json
import os
import re
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from prism_mesa.deliberation.text import error_text, result_text, short_repr
from prism_mesa.deliberation.tools import ToolRegistry

TOPICS = frozenset({"jazz", "tea", "chess", "rain", "Oslo"})
SORTED = '["Oslo","chess","jazz","rain","tea"]'


class Plain:
    """Has no text of its own."""


class Profile(BaseModel):
    interests: set[str] = Field(default=set(TOPICS), alias="likes")
    circles: list[frozenset[str]] = [TOPICS]


@dataclass
class Wall:
    tags: set = field(default_factory=lambda: set(TOPICS))
    profile: Profile = field(default_factory=Profile)


def named():
    yield from ({"of": TOPICS}, Plain())


VALUES = {
    "nested": {"b": [TOPICS, (set(TOPICS),)], "a": {TOPICS}},
    "mixed": {1, "a", None, 2.5, ("x", 2), TOPICS},
    "dataclass": [Wall()],
    "objects": {Plain(), len, Plain},
    "keyed": {Plain(): 1, TOPICS: 2},
    "text": f"It is {Plain()} or {np.random.default_rng(1)!r}",
    "arrays": {"of": np.array([TOPICS, Plain()], dtype=object), "int": np.int64(3), "nan": np.float32("nan")},
    "frame": pd.DataFrame({"of": [TOPICS, Plain()]}, index=["x", "y"]),
    "wide": pd.DataFrame(np.zeros((2, 40))),
}


def lines() -> list[str]:
    """Return what this process tells of all values, and of tools that return or raise them."""
    found = [f"{name}: {result_text(value)}" for name, value in VALUES.items()]
    found += [error_text(ValueError(f"no {Plain()}")), short_repr(Plain())]

    def tag(post: int, tags: set[str] = set(TOPICS)) -> object:  # noqa: B006
        """Tag a post."""
        return named()

    registry = ToolRegistry([tag])
    found += [registry.describe(), str(registry.call_schema), registry.execute("tag", {"post": 1}).text]
    return [*found, registry.identity("tag", {"post": 1, "tags": sorted(TOPICS)})]


def in_another_process(seed: str, width: int) -> str:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import test_jsonable; print('\\n'.join(test_jsonable.lines()))"
    env = {**os.environ, "PYTHONHASHSEED": seed, "COLUMNS": str(width), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)],
        capture_output=True,
        encoding="utf-8",
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_what_tools_return_is_worded_the_same_in_every_process():
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    other = in_another_process(seed, 200)
    assert other.splitlines() == "\n".join(lines()).splitlines()
    assert "0x…" in other
    assert re.search(r"0x[0-9A-Fa-f]{4}", other) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (TOPICS, SORTED),
        ({10, 9, 2.5, -1}, "[-1,2.5,9,10]"),
        ({"b": 1, "a": {"y": 1, "x": 2}}, '{"b":1,"a":{"y":1,"x":2}}'),
        ({2, "a", 1, None}, '[1,2,"a",null]'),
        ({frozenset("ba"), frozenset("c")}, '[["a","b"],["c"]]'),
        (Profile(), f'{{"likes":{SORTED},"circles":[{SORTED}]}}'),
        ({TOPICS: 1}, '{"Oslo,chess,jazz,rain,tea":1}'),
        (Plain(), f'"<{Plain.__module__}.Plain object at 0x…>"'),
        (np.array([[1, 2], [3, 4]]), "[[1,2],[3,4]]"),
        (np.datetime64("2026-01-02"), '"2026-01-02"'),
        (pd.Series([1, 2]), "[1,2]"),
        (pd.Series([1, 2], index=["a", "b"]), '{"a":1,"b":2}'),
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), '[{"a":1,"b":"x"},{"a":2,"b":"y"}]'),
        (pd.DataFrame({"a": [1]}, index=pd.Index(["r"], name="row")), '[{"row":"r","a":1}]'),
        (pd.Timestamp("2026-01-02"), '"2026-01-02T00:00:00"'),
        ({"a": 1}.keys(), '["a"]'),
        (deque([{2, 1}]), "[[1,2]]"),
        ((n for n in ({2, 1},)), "[[1,2]]"),
    ],
)
def test_a_value_reads_as_json_with_sets_in_order_and_dicts_as_they_came(value, text):
    assert result_text(value) == text


def test_calls_with_the_same_set_come_to_the_same():
    def tag(tags: set[str]) -> None:
        """Tag."""

    registry = ToolRegistry([tag])
    numbers = [str(number) for number in range(40)]
    assert registry.identity("tag", {"tags": numbers}) == registry.identity("tag", {"tags": numbers[::-1]})


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab1", max_size=2),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text("ab", max_size=1), below, max_size=3),
)


@given(values)
def test_what_json_knows_is_told_as_before(value):
    assert json.loads(result_text({"of": value})) == {"of": value}
