"""Settings in which two runs differ: configuration, versions of the code, who decided, where one branched."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prism_mesa.params import ONE_VALUE
from prism_mesa.runs.identity import module_input

MISSING: Final = "not there"
"""The value of a key that one side does not have, as another version wrote it."""


@dataclass(frozen=True)
class Setting:
    """A dotted key with its value on both sides."""

    key: str
    base: Any
    other: Any


@dataclass(frozen=True)
class Branching:
    """The run that a run branched from, and its first round with its own settings."""

    run: str
    round: int


def settings_that_differ(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[Setting]:
    """Return the keys of two configurations whose values differ, except `name` and `seed`.

    Lists of groups of the same length are compared place by place.

    >>> settings_that_differ({"seed": 1, "feed": {"mode": "random"}}, {"feed": {"mode": "x_2023"}})
    [Setting(key='feed.mode', base='random', other='x_2023')]
    """
    return [setting for setting in _differing(base, other, "") if setting.key not in ("name", "seed")]


def _differing(base: Any, other: Any, key: str) -> Iterator[Setting]:
    pairs = None if key in ONE_VALUE else _parts(base, other)
    if pairs is None:
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (base, other))
        if base != other or not (numbers or type(base) is type(other)):  # 1 and 1.0 are the same number
            yield Setting(key, base, other)
        return
    for name, (left, right) in pairs.items():
        yield from _differing(left, right, f"{key}.{name}" if key else name)


def _parts(base: Any, other: Any) -> dict[str, tuple[Any, Any]] | None:
    if isinstance(base, Mapping) and isinstance(other, Mapping):
        names = dict.fromkeys([*base, *other])
        return {str(name): (base.get(name, MISSING), other.get(name, MISSING)) for name in names}
    lists = isinstance(base, list) and isinstance(other, list) and len(base) == len(other)
    if lists and any(isinstance(member, Mapping) for member in (*base, *other)):
        return {str(place): pair for place, pair in enumerate(zip(base, other, strict=True))}
    return None


def facts_that_differ(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[Setting]:
    """Return other differences of two manifests that may change results: versions, who decided, Python objects."""
    sides = []
    for manifest in (base, other):
        packages, llm = manifest.get("packages"), manifest.get("llm")
        facts = {f"version of {name}": value for name, value in packages.items()} if isinstance(packages, dict) else {}
        facts |= {"git revision": manifest.get("git"), "version of python": manifest.get("python")}
        facts |= {"code of PRISM": manifest.get("code"), "decided by": manifest.get("decided_by")}
        facts |= {"digest of the LLM": llm.get("digest")} if isinstance(llm, dict) else {}
        sides.append(facts | {"given in Python": manifest.get("made_in_python")})
    left, right = sides
    pairs = {key: (left.get(key), right.get(key)) for key in dict.fromkeys([*left, *right])}
    differ = [Setting(key, *pair) for key, pair in pairs.items() if pair[0] != pair[1]]
    return [*differ, *_inputs_that_differ(base, other)]


def _inputs_that_differ(base: Mapping[str, Any], other: Mapping[str, Any]) -> list[Setting]:
    """Return the input files and modules whose contents differ; files that only one run names differ as keys."""
    left, right = base.get("inputs_one_by_one"), other.get("inputs_one_by_one")
    if isinstance(left, Mapping) and isinstance(right, Mapping) and left != right:
        both = [name for name in left if name in right and left[name] != right[name]]
        return [
            Setting(name if name.startswith(module_input("")) else f"content of {name}", left[name], right[name])
            for name in both
        ]
    was, now = base.get("inputs"), other.get("inputs")
    return [] if was == now else [Setting("content of input files, or code of one's own", was, now)]


def read_branching(manifest: Mapping[str, Any]) -> Branching | None:
    """Return the origin of a branch from its manifest, if it is one."""
    branched = manifest.get("branched_from")
    branched = branched if isinstance(branched, dict) else {}
    run, round_ = branched.get("run"), branched.get("round")
    if not isinstance(run, str) or isinstance(round_, bool) or not isinstance(round_, int) or round_ < 0:
        return None
    return Branching(Path(run).name, round_)


def first_free_round(base: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]) -> int:
    """Return the first round in which two runs, given as manifests and folder names, can differ.

    It is 0, unless one branched from the other, or both branched from the same run.
    """
    left, right = read_branching(base), read_branching(other)
    if right is not None and right.run == names[0]:
        return right.round
    if left is not None and left.run == names[1]:
        return left.round
    if left is not None and right is not None and left.run == right.run:
        return min(left.round, right.round)
    return 0
