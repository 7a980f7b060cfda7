"""The runs of a study by condition and seed, from which all statistics start; levels of factors; columns of tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.streams import Floats, Ints


@dataclass(frozen=True)
class RunTable:
    """The runs of a study, and how they were designed.

    Attributes:
        runs: A row for each run that was planned: `run`, `arm`, `seed`, `status` (`done`, `failed`,
            `skipped`, `missing`), `reason`, the factors by dotted key, the measures (NaN if missing).
        arms: In the order of the study; ("all",) if it has none.
        factors: Dotted keys that vary.
        design: How conditions were chosen.
        paired: Whether all conditions have the same seeds.
        sampling: What a sampled design was made from, for the indices: SALib's problem, its seed and size (see
            `design.sampling.sample_points`); None otherwise.
    """

    runs: pd.DataFrame
    arms: tuple[str, ...]
    factors: tuple[str, ...]
    measures: tuple[str, ...]
    design: Literal["factorial", "sobol", "lhs", "morris", "csv"] = "factorial"
    paired: bool = True
    sampling: dict[str, object] | None = None


type LevelKey = tuple[str, Any]


def level_key(value: Any) -> LevelKey:
    """Return what two levels have in common if they are the same, as YAML reads them.

    >>> level_key(1) == level_key(1.0), level_key(True) == level_key(1), level_key("1") == level_key(1)
    (True, False, False)
    """
    if isinstance(value, bool | np.bool_):
        return ("truth", bool(value))
    if value is None or (isinstance(value, float) and value != value):
        return ("nothing", None)
    if isinstance(value, int | float | np.integer | np.floating):
        return ("number", float(value))
    return ("text", level_text(value))


def level_text(value: Any) -> str:
    """Return a level as one would write it in YAML.

    >>> level_text(True), level_text(0.5), level_text(20.0), level_text("x_algo"), level_text(None)
    ('true', '0.5', '20', 'x_algo', 'null')
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if value is None or (isinstance(value, float) and value != value):
        return "null"
    if isinstance(value, float | np.floating):
        return repr(float(value)).removesuffix(".0")
    if isinstance(value, list | tuple | np.ndarray):
        return f"[{', '.join(level_text(one) for one in value)}]"
    return str(value)


def level_places(values: Iterable[Any], first: Iterable[Any] = ()) -> tuple[Ints, tuple[Any, ...]]:
    """Return for each value the place of its level, and the levels: numbers ascending, others as they come.

    Args:
        values: One for each run.
        first: Levels that come before all others, whether or not a value is one of them.
    """
    levels = list(first)
    places = {level_key(level): place for place, level in enumerate(levels)}
    found = []
    for value in values:
        key = level_key(value)
        if key not in places:
            places[key] = len(levels)
            levels.append(value)
        found.append(places[key])
    codes = np.array(found, np.int64)
    kinds = {level_key(level)[0] for level in levels}
    if kinds <= {"number"} or kinds <= {"truth"}:
        order = sorted(range(len(levels)), key=lambda place: float(levels[place]))
        return np.argsort(order)[codes], tuple(levels[place] for place in order)
    return codes, tuple(levels)


type Bools = npt.NDArray[np.bool_]

ARM: Final = "arm"  # the term that arms are the levels of
ROUNDING: Final = 1e-12  # what part of a number the rounding of its last digits may come to


@dataclass(frozen=True)
class Cells:
    """Measures of all runs, by condition and replicate.

    Attributes:
        conditions: A row for each condition: `arm` and the factors; ordered by arm, then by the levels.
        codes: Term (`arm` or a factor) -> for each condition, the place of its level in `levels`.
        levels: Term -> its levels: numbers ascending, others in the order in which they come, arms in that of the
            study.
        values: Shape (conditions, replicates, measures): NaN where a run is not done, or has no such measure.
            Replicates are seeds where these are the same in all conditions, else those of each condition.
        planned: Shape (conditions, replicates): whether a run was planned and not skipped.
        done: Shape (conditions, replicates): whether the run is done.
        paired: Whether replicates are seeds.
    """

    conditions: pd.DataFrame
    codes: dict[str, Ints]
    levels: dict[str, tuple[Any, ...]]
    values: Floats
    planned: Bools
    done: Bools
    measures: tuple[str, ...]
    paired: bool

    @property
    def terms(self) -> tuple[str, ...]:
        """Of `arm` and the factors, those with two levels or more."""
        return tuple(term for term, levels in self.levels.items() if len(levels) > 1)

    def of(self, measures: Sequence[str]) -> "Cells":
        """Return the same of some measures only, in their order; one may come twice."""
        places = [self.measures.index(name) for name in measures]
        return replace(self, values=self.values[:, :, places], measures=tuple(measures))

    def at(self, term: str, place: int) -> Bools:
        """Return for each condition whether it has a level of a term."""
        return np.equal(self.codes[term], place)

    def texts(self, term: str) -> tuple[str, ...]:
        """Return the levels of a term as one writes them."""
        return tuple(level_text(level) for level in self.levels[term])

    def pairs(self, term: str) -> Iterator[tuple[int, int]]:
        """Yield all pairs of levels of a term: the later one on the left, so that a difference is a change."""
        return ((right, left) for left, right in combinations(range(len(self.levels[term])), 2))


def make_cells(table: RunTable) -> Cells:
    """Return the runs of a study by condition and replicate.

    A run counts if it is `done`; of a measure that is infinite nothing counts.
    """
    runs = table.runs
    codes, levels = {}, {}
    codes[ARM], levels[ARM] = level_places(runs[ARM], table.arms)
    for factor in table.factors:
        codes[factor], levels[factor] = level_places(runs[factor])
    keys = np.column_stack(list(codes.values()))
    _, first, condition = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    condition = condition.reshape(-1)
    done = (runs["status"] == "done").to_numpy(bool)
    measured = _numbers(runs.reindex(columns=list(table.measures)))
    measured = np.where(done[:, None] & np.isfinite(measured), measured, np.nan)
    replicate = _replicates(runs["seed"], condition, table.paired)
    shape = (len(first), int(replicate.max(initial=-1)) + 1)
    values, (planned, finished) = np.full((*shape, len(table.measures)), np.nan), np.zeros((2, *shape), bool)
    order = np.argsort(done, kind="stable")  # of two rows for one run, the one that is done counts
    values[condition[order], replicate[order]] = measured[order]
    planned[condition, replicate] = runs["status"] != "skipped"
    finished[condition[done], replicate[done]] = True
    return Cells(
        conditions=runs[[ARM, *table.factors]].iloc[first].reset_index(drop=True),
        codes={term: code[first] for term, code in codes.items()},
        levels=levels,
        values=values,
        planned=planned,
        done=finished,
        measures=table.measures,
        paired=table.paired,
    )


def _numbers(columns: pd.DataFrame) -> Floats:
    """Return columns as numbers, NaN where something else stands."""
    odd = [name for name, kind in columns.dtypes.items() if kind != np.float64]
    if odd:
        columns = columns.assign(**{str(name): pd.to_numeric(columns[name], errors="coerce") for name in odd})
    numbers: Floats = columns.to_numpy(np.float64)
    return numbers


def _replicates(seeds: pd.Series, condition: Ints, paired: bool) -> Ints:
    """Return for each run the place of its seed among all seeds, or among those of its condition."""
    if paired:
        return np.unique(seeds.to_numpy(), return_inverse=True)[1].reshape(-1)
    return np.asarray(seeds.groupby(condition).rank("dense"), np.int64) - 1


def alike(values: Floats) -> Iterator[tuple[Ints, Bools]]:
    """Yield groups of columns that have numbers in the same rows, and these rows, so that each group is whole.

    Args:
        values: Shape (rows, columns).
    """
    there = np.isfinite(values)
    patterns, group = np.unique(there, axis=1, return_inverse=True)
    for place in range(patterns.shape[1]):
        yield np.flatnonzero(group.reshape(-1) == place), patterns[:, place]


def constant(values: Floats, scale: Floats | float = 0.0) -> Bools:
    """Return for each column whether its numbers are all the same, but for the rounding of their last digits.

    Args:
        values: Shape (rows, columns), at least one row.
        scale: Of each column, the size of what the numbers are differences of, if they are: it was rounded too.
    """
    return np.asarray(np.ptp(values, axis=0) <= ROUNDING * np.maximum(np.abs(values).max(axis=0), scale))


def variance(sample: Floats) -> Floats:
    """Return the variance of each column's numbers, without its gaps (NaN); NaN of fewer than two."""
    there = np.isfinite(sample)
    n = there.sum(axis=0)
    mean = np.where(there, sample, 0.0).sum(axis=0) / np.maximum(n, 1)
    squares = np.where(there, (sample - mean) ** 2, 0.0).sum(axis=0)
    return np.asarray(np.divide(squares, n - 1, out=np.full(len(n), np.nan), where=n > 1))


type Columns = Mapping[str, str]

EXPECTED: Final = "expectations"
MARGINS: Final = "expectations, of a margin"
OTHERS: Final = "other differences"  # families of Holm's correction, as column `family` names them
_TEXTS: Final = ("text", "measure", "term", "left", "right", "family", "effect", "factor", "index")
_COUNTS: Final = ("n", "missing", "df", "seeds")


def _columns(names: str) -> Columns:
    """Return columns with their types: texts, counts, the flag `equivalent`, else numbers."""
    kinds = {**dict.fromkeys(_TEXTS, "str"), **dict.fromkeys(_COUNTS, "int64"), "equivalent": "bool"}
    return {name: kinds.get(name, "float64") for name in names.split()}


ANSWERS: Final = _columns("measure n missing mean median sd low high")
"""Those after `arm` and the factors, which have the types that the runs give them."""
DIFFERENCES: Final = _columns(
    "measure term left right n missing difference low high d_z p p_holm family u p_mann_whitney rank_biserial"
)
GROUPS: Final = _columns("measure term n missing h df p p_holm")
EQUIVALENCE: Final = _columns(
    "text measure left right n missing margin low high p_low p_high p p_apart p_holm equivalent"
)
EFFECTS: Final = _columns("measure effect n missing df f p p_holm partial_eta_squared")
SENSITIVITY: Final = _columns("measure factor index value low high")
PRECISION: Final = _columns("measure term left right seeds half_width")
EXPECTED_WIDTH: Final = _columns("measure term left right half_width")


def make_table(columns: Columns, parts: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a table with exactly these columns.

    Args:
        columns: Name -> type.
        parts: Rows: for the first column a list, for each other a value, or as many as that list has.
    """
    gathered: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in columns}
    first = next(iter(columns))
    for part in parts:
        for name, kind in columns.items():
            values = np.asarray(part[name], object if kind == "str" else kind)
            gathered[name].append(np.broadcast_to(values, len(part[first])))
    joined: dict[str, Any] = {name: np.concatenate(arrays) if arrays else [] for name, arrays in gathered.items()}
    return pd.DataFrame({name: pd.Series(joined[name], dtype=kind) for name, kind in columns.items()})
