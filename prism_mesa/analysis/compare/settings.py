"""Settings that differ between two runs: configuration, versions, deciders and branches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prism_mesa.params import MAPPING_KEYS
from prism_mesa.runs.identity import module_input

MISSING: Final = "not there"
"""The value of a key that one run lacks, because another version made it."""


@dataclass(frozen=True)
class Setting:
    """A dotted key and its value in each run."""

    key: str
    base: Any
    other: Any


@dataclass(frozen=True)
class Branching:
    """The origin of a branch, and the first round with its new settings."""

    run: str
    round: int


def settings_that_differ(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[Setting]:
    """Return the keys of two configurations whose values differ, except `name` and `seed`.

    Lists of groups are compared item by item if they have the same length.

    >>> settings_that_differ({"seed": 1, "feed": {"mode": "random"}}, {"feed": {"mode": "x_2023"}})
    [Setting(key='feed.mode', base='random', other='x_2023')]
    """
    return [setting for setting in _find_differences(base, other, "") if setting.key not in ("name", "seed")]


def _find_differences(base: Any, other: Any, key: str) -> Iterator[Setting]:
    pairs = None if key in MAPPING_KEYS else _child_pairs(base, other)
    if pairs is None:
        are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (base, other))
        if base != other or not (are_numbers or type(base) is type(other)):  # 1 and 1.0 are the same number
            yield Setting(key, base, other)
        return
    for name, (left, right) in pairs.items():
        yield from _find_differences(left, right, f"{key}.{name}" if key else name)


def _child_pairs(base: Any, other: Any) -> dict[str, tuple[Any, Any]] | None:
    if isinstance(base, Mapping) and isinstance(other, Mapping):
        names = dict.fromkeys([*base, *other])
        return {str(name): (base.get(name, MISSING), other.get(name, MISSING)) for name in names}
    are_lists = isinstance(base, list) and isinstance(other, list) and len(base) == len(other)
    if are_lists and any(isinstance(member, Mapping) for member in (*base, *other)):
        return {str(index): pair for index, pair in enumerate(zip(base, other, strict=True))}
    return None


def facts_that_differ(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[Setting]:
    """Return the differences in versions, deciders, Python objects and inputs; each may change results."""
    facts_by_run = []
    for manifest in (base, other):
        packages, llm = manifest.get("packages"), manifest.get("llm")
        facts = {f"version of {name}": value for name, value in packages.items()} if isinstance(packages, dict) else {}
        facts |= {"git revision": manifest.get("git"), "version of python": manifest.get("python")}
        facts |= {"code of PRISM": manifest.get("code"), "decided by": manifest.get("decided_by")}
        facts |= {"digest of the LLM": llm.get("digest")} if isinstance(llm, dict) else {}
        facts_by_run.append(facts | {"given in Python": manifest.get("made_in_python")})
    left, right = facts_by_run
    pairs = {key: (left.get(key), right.get(key)) for key in dict.fromkeys([*left, *right])}
    settings = [Setting(key, *pair) for key, pair in pairs.items() if pair[0] != pair[1]]
    return [*settings, *_inputs_that_differ(base, other)]


def _inputs_that_differ(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[Setting]:
    left, right = base.get("inputs_one_by_one", {}), other.get("inputs_one_by_one", {})
    changed_names = [name for name in left if name in right and left[name] != right[name]]
    titles = {name: name if name.startswith(module_input("")) else f"content of {name}" for name in changed_names}
    return [Setting(titles[name], left[name], right[name]) for name in changed_names]


def read_branching(manifest: Mapping[str, Any]) -> Branching | None:
    """Return the origin of a branch from its manifest; None for other runs."""
    origin = manifest.get("branched_from")
    origin = origin if isinstance(origin, dict) else {}
    run, round_ = origin.get("run"), origin.get("round")
    if not isinstance(run, str) or isinstance(round_, bool) or not isinstance(round_, int) or round_ < 0:
        return None
    return Branching(Path(run).name, round_)


def earliest_divergence_round(base: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]) -> int:
    """Return the first round in which two runs can differ: 0 unless they share rounds through a branch."""
    left, right = read_branching(base), read_branching(other)
    if right is not None and right.run == names[0]:
        return right.round
    if left is not None and left.run == names[1]:
        return left.round
    if left is not None and right is not None and left.run == right.run:
        return min(left.round, right.round)
    return 0
