"""What two runs were told that differs: configuration, versions of the code, who decided, where one branched."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prism_mesa.params import ONE_VALUE
from prism_mesa.runs.identity import module_input

MISSING: Final = "not there"
"""What stands for a key that one side does not have: another version wrote it."""
_APART: Final = ("name", "seed")
"""Keys that are told elsewhere, or tell nothing."""


@dataclass(frozen=True)
class Setting:
    """A key, dotted, with its value on both sides."""

    key: str
    base: Any
    other: Any


@dataclass(frozen=True)
class Branching:
    """Of a run that branched from another: from which, and the first round under its own settings."""

    run: str
    round: int


def settings_that_differ(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[Setting]:
    """Return the keys of two configurations whose values differ, but for `name` and `seed`.

    Lists of the same length that hold groups are compared place by place.

    >>> settings_that_differ({"seed": 1, "feed": {"mode": "random"}}, {"feed": {"mode": "x_2023"}})
    [Setting(key='feed.mode', base='random', other='x_2023')]
    """
    return [one for one in _differing(base, other, "") if one.key not in _APART]


def _differing(base: Any, other: Any, key: str) -> Iterator[Setting]:
    pairs = None if key in ONE_VALUE else _parts_of(base, other)
    if pairs is None:
        if type(base) is not type(other) or base != other:
            yield from () if _same_number(base, other) else (Setting(key, base, other),)
        return
    for name, (left, right) in pairs.items():
        yield from _differing(left, right, f"{key}.{name}" if key else name)


def _parts_of(base: Any, other: Any) -> dict[str, tuple[Any, Any]] | None:
    """Return what two groups, or two lists of groups, hold side by side; None of anything else."""
    if isinstance(base, Mapping) and isinstance(other, Mapping):
        names = dict.fromkeys([*base, *other])
        return {str(name): (base.get(name, MISSING), other.get(name, MISSING)) for name in names}
    lists = isinstance(base, list) and isinstance(other, list) and len(base) == len(other)
    if lists and any(isinstance(one, Mapping) for one in (*base, *other)):
        return {str(place): pair for place, pair in enumerate(zip(base, other, strict=True))}
    return None


def _same_number(base: Any, other: Any) -> bool:
    """Return whether two values are one number, written in two ways."""
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (base, other))
    return numbers and base == other


def facts_that_differ(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[Setting]:
    """Return what else two manifests say that may change a result: versions, who decided, what was given in Python."""
    sides = []
    for manifest in (base, other):
        packages, llm = manifest.get("packages"), manifest.get("llm")
        told = {f"version of {name}": value for name, value in packages.items()} if isinstance(packages, dict) else {}
        told |= {"git revision": manifest.get("git"), "version of python": manifest.get("python")}
        told |= {"code of PRISM": manifest.get("code")}
        told |= {"decided by": manifest.get("decided_by")}
        told |= {"digest of the LLM": llm.get("digest")} if isinstance(llm, dict) else {}
        sides.append(told | {"given in Python": manifest.get("made_in_python")})
    left, right = sides
    differ = [
        Setting(key, left.get(key), right.get(key))
        for key in dict.fromkeys([*left, *right])
        if left.get(key) != right.get(key)
    ]
    return [*differ, *_inputs_that_differ(base, other)]


def _inputs_that_differ(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[Setting]:
    """Return which files and modules hold something else; those that only one names differ as keys."""
    left, right = base.get("inputs_one_by_one"), other.get("inputs_one_by_one")
    if isinstance(left, Mapping) and isinstance(right, Mapping) and left != right:
        both = [name for name in left if name in right and left[name] != right[name]]
        return [
            Setting(name if name.startswith(module_input("")) else f"content of {name}", left[name], right[name])
            for name in both
        ]
    was, now = base.get("inputs"), other.get("inputs")
    return [] if was == now else [Setting("content of input files, or code of one's own", was, now)]


def branching_of(manifest: Mapping[str, Any]) -> Branching | None:
    """Return where a run branched from another, if its manifest says so."""
    told = manifest.get("branched_from")
    if not isinstance(told, dict):
        return None
    run, round_ = told.get("run"), told.get("round")
    if not isinstance(run, str) or isinstance(round_, bool) or not isinstance(round_, int) or round_ < 0:
        return None
    return Branching(Path(run).name, round_)


def first_free_round(base: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]) -> int:
    """Return the first round in which two runs can differ: 0, but where one is a branch of the other, or both of a run.

    Args:
        base: The manifest of one.
        other: That of the other.
        names: The names of their folders.
    """
    left, right = branching_of(base), branching_of(other)
    if right is not None and right.run == names[0]:
        return right.round
    if left is not None and left.run == names[1]:
        return left.round
    if left is not None and right is not None and left.run == right.run:
        return min(left.round, right.round)
    return 0
