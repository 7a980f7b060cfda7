"""The runs of a study by condition and seed, the levels of its factors, and the columns of statistical tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.arrays import Floats, Ints, Mask


class Treatment(NamedTuple):
    """Arms that differ only in the agents that an intervention treats: a random share, all (`whole`), or `none`.

    `measure` is of treated minus control agents (``likes@chronological``), and `level` of all agents in the same
    unit and rounds (``likes@24``).
    """

    measure: str
    level: str
    partial: tuple[str, ...]
    whole: str
    none: str


@dataclass(frozen=True)
class RunTable:
    """The runs of a study and their design.

    Attributes:
        runs: A row for each planned run: `run`, `arm`, `seed`, `status` (`done`, `failed`, `skipped`, `missing`),
            `reason`, the factors by dotted key, the measures (NaN if missing).
        arms: The arms in order; ("all",) for a study without arms.
        factors: The dotted keys that vary.
        paired: Whether all conditions have the same seeds.
        sampling: The data of a sampled design (see `design.sampling.sample_points`); None otherwise.
        treatments: Arms that show the effect of an intervention on some agents and on all.
    """

    runs: pd.DataFrame
    arms: tuple[str, ...]
    factors: tuple[str, ...]
    measures: tuple[str, ...]
    design: Literal["factorial", "sobol", "lhs", "morris", "csv"] = "factorial"
    paired: bool = True
    sampling: dict[str, object] | None = None
    treatments: tuple[Treatment, ...] = ()


def level_key(value: Any) -> tuple[str, Any]:
    """Return a key that is the same for values that are equal in YAML.

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
    """Return a level as YAML text.

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
        return f"[{', '.join(level_text(item) for item in value)}]"
    return str(value)


def level_indices(values: Iterable[Any], first: Iterable[Any] = ()) -> tuple[Ints, tuple[Any, ...]]:
    """Return the index of each value's level, and the levels: sorted numbers, or `first` and then others in order."""
    levels = list(first)
    index_by_key = {level_key(level): index for index, level in enumerate(levels)}
    indices = []
    for value in values:
        key = level_key(value)
        if key not in index_by_key:
            index_by_key[key] = len(levels)
            levels.append(value)
        indices.append(index_by_key[key])
    codes = np.array(indices, np.int64)
    key_types = {level_key(level)[0] for level in levels}
    if key_types <= {"number"} or key_types <= {"truth"}:
        order = sorted(range(len(levels)), key=lambda index: float(levels[index]))
        return np.argsort(order)[codes], tuple(levels[index] for index in order)
    return codes, tuple(levels)


ARM: Final = "arm"  # the term whose levels are the arms
ROUNDING: Final = 1e-12  # largest relative rounding error


@dataclass(frozen=True)
class Cells:
    """Measures of all runs, by condition and replicate.

    Attributes:
        conditions: A row for each condition: `arm` and the factors; sorted by arm, then by levels.
        codes: Term (`arm` or a factor) -> the index of each condition's level in `levels`.
        levels: Term -> its levels. Numbers are sorted, other levels are in order of appearance, arms in their order.
        values: Shape (conditions, replicates, measures); NaN for runs that are not done or lack the measure. Replicates
            are the seeds that all conditions share if `paired`, else the seeds of each condition.
        planned: Shape (conditions, replicates): whether a run was planned and not skipped.
        done: Shape (conditions, replicates): whether the run is done.
    """

    conditions: pd.DataFrame
    codes: dict[str, Ints]
    levels: dict[str, tuple[Any, ...]]
    values: Floats
    planned: Mask
    done: Mask
    measures: tuple[str, ...]
    paired: bool

    @property
    def terms(self) -> tuple[str, ...]:
        """`arm` and the factors, except terms with a single level."""
        return tuple(term for term, levels in self.levels.items() if len(levels) > 1)

    def select(self, measures: Sequence[str]) -> "Cells":
        """Return the cells with only some measures, in the given order; a measure may occur twice."""
        columns = [self.measures.index(name) for name in measures]
        return replace(self, values=self.values[:, :, columns], measures=tuple(measures))

    def has_level(self, term: str, index: int) -> Mask:
        """Return a mask of the conditions with a level of a term, given the level's index."""
        return np.equal(self.codes[term], index)

    def texts(self, term: str) -> tuple[str, ...]:
        """Return the levels of a term as text."""
        return tuple(level_text(level) for level in self.levels[term])


def make_cells(table: RunTable) -> Cells:
    """Return the finished runs of a study by condition and replicate; infinite values are treated as missing."""
    runs = table.runs
    codes, levels = {}, {}
    codes[ARM], levels[ARM] = level_indices(runs[ARM], table.arms)
    for factor in table.factors:
        codes[factor], levels[factor] = level_indices(runs[factor])
    keys = np.column_stack(list(codes.values()))
    _, first, condition = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    condition = condition.reshape(-1)
    done = (runs["status"] == "done").to_numpy(bool)
    columns = runs.reindex(columns=list(table.measures)).apply(pd.to_numeric, errors="coerce").to_numpy(np.float64)
    columns = np.where(done[:, None] & np.isfinite(columns), columns, np.nan)
    if table.paired:
        replicate = np.unique(runs["seed"].to_numpy(), return_inverse=True)[1].reshape(-1)
    else:
        replicate = np.asarray(runs["seed"].groupby(condition).rank("dense"), np.int64) - 1
    shape = (len(first), int(replicate.max(initial=-1)) + 1)
    values, (planned, finished) = np.full((*shape, len(table.measures)), np.nan), np.zeros((2, *shape), bool)
    order = np.argsort(done, kind="stable")  # a finished row of a run overwrites an unfinished one
    values[condition[order], replicate[order]] = columns[order]
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


def gap_groups(values: Floats) -> Iterator[tuple[Ints, Mask]]:
    """Yield groups of columns that have numbers in the same rows, with a mask of these rows."""
    patterns, group = np.unique(np.isfinite(values), axis=1, return_inverse=True)
    for index in range(patterns.shape[1]):
        yield np.flatnonzero(group.reshape(-1) == index), patterns[:, index]


def is_flat(values: Floats, scale: Floats | float = 0.0) -> Mask:
    """Return a mask of columns that are constant up to rounding; `scale` is the size of values before subtraction."""
    return np.asarray(np.ptp(values, axis=0) <= ROUNDING * np.maximum(np.abs(values).max(axis=0), scale))


def ratio(sums: Floats, counts: Floats | Ints) -> Floats:
    """Return sums divided by counts; NaN where a count is 0."""
    return np.asarray(np.divide(sums, counts, out=np.full(np.shape(sums), np.nan), where=np.asarray(counts) > 0))


def variance(sample: Floats) -> Floats:
    """Return the variance of the numbers in each column, ignoring NaN; NaN for fewer than two numbers."""
    is_finite = np.isfinite(sample)
    n = is_finite.sum(axis=0)
    mean = np.where(is_finite, sample, 0.0).sum(axis=0) / np.maximum(n, 1)
    return ratio(np.where(is_finite, (sample - mean) ** 2, 0.0).sum(axis=0), n - 1)


type Columns = Mapping[str, str]

EXPECTED: Final = "expectations"
MARGINS: Final = "expectations, of a margin"
OTHERS: Final = "other differences"  # values of the column `family`: the tests that Holm's correction covers
_TEXTS: Final = "text measure term left right family effect factor index arm whole none".split()
_COUNTS: Final = ("n", "missing", "df", "seeds")


def _column_types(names: str) -> Columns:
    kinds = {**dict.fromkeys(_TEXTS, "str"), **dict.fromkeys(_COUNTS, "int64"), "equivalent": "bool"}
    return {name: kinds.get(name, "float64") for name in names.split()}


ANSWERS: Final = _column_types("measure n missing mean median sd low high")
"""The columns that follow `arm` and the factors."""
DIFFERENCES: Final = _column_types(
    "measure term left right n missing difference low high d_z p p_holm family u p_mann_whitney rank_biserial"
)
GROUPS: Final = _column_types("measure term n missing h df p p_holm")
EQUIVALENCE: Final = _column_types(
    "text measure left right n missing margin low high p_low p_high p p_apart p_holm equivalent"
)
EFFECTS: Final = _column_types("measure effect n missing df f p p_holm partial_eta_squared")
SENSITIVITY: Final = _column_types("measure factor index value low high")
PRECISION: Final = _column_types("measure term left right seeds half_width")
TREATMENTS: Final = _column_types("measure effect arm whole none n missing mean low high")
EXPECTED_WIDTH: Final = _column_types("measure term left right half_width")


def make_table(columns: Columns, parts: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a table from parts: a list for the first column, and a list or a single value for each other column."""
    arrays_by_name: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in columns}
    first = next(iter(columns))
    for part in parts:
        for name, kind in columns.items():
            values = np.asarray(part[name], object if kind == "str" else kind)
            arrays_by_name[name].append(np.broadcast_to(values, len(part[first])))
    data: dict[str, Any] = {name: np.concatenate(arrays) if arrays else [] for name, arrays in arrays_by_name.items()}
    return pd.DataFrame({name: pd.Series(data[name], dtype=kind) for name, kind in columns.items()})
