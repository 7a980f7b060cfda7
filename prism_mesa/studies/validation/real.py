"""Real values: as PRISM carries them, or computed from the data by the estimators that measure runs."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.errors import DataError, printable
from prism_mesa.runs.measures import ccdf, gini, tail_exponent, top_share
from prism_mesa.social.params import FilesParams
from prism_mesa.social.state.network import from_edges
from prism_mesa.social.world.csv_files import read_header
from prism_mesa.social.world.unpacking import check_size, opened
from prism_mesa.studies.estimators import follows
from prism_mesa.studies.estimators.power_law import fit_power_law, plausibility
from prism_mesa.studies.measures.curves import SHARES, lorenz
from prism_mesa.studies.measures.rhythms import CONGRESS_HOURS
from prism_mesa.studies.validation.targets import DELAYS, QUANTILES, SIZES, TARGETS, TOP_SHARES

type Curve = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

_SIZES: Final = Path("cascades_voterfraud") / "cascade_size_histogram.csv"
_USERS: Final = Path("cascades_voterfraud") / "users.csv.gz"
_WINDOWS: Final = Path("usage_esm") / "usage.csv.gz"
_GRAPH: Final = Path("follow_graph") / "verizoncareers_edges.csv.gz"
_MOST_BYTES: Final = 2_000_000_000
_MOST: Final = 2**53
_MOST_CASCADES: Final = 100_000_000
_NAMES_SHOWN: Final = 20
_ACTS: Final = ("liked", "reshared", "replied", "posted")


@dataclass(frozen=True)
class Real:
    """What runs are held against.

    Attributes:
        values: By measure.
        curves: By name, as `measures.curves` has them; few points where the data are not here.
        computed: Measures whose values were computed from data, not carried.
    """

    values: Mapping[str, float]
    curves: Mapping[str, Curve]
    computed: frozenset[str]


def carried() -> Real:
    """Return real values as PRISM carries them."""
    curves = {
        "cascade_sizes": _curve(list(SIZES), list(SIZES.values())),
        "delays": _curve(DELAYS, QUANTILES),
        "hours": _curve(range(24), CONGRESS_HOURS),
        "activity": _curve(
            [0, *(1 - top for top in reversed(TOP_SHARES)), 1],
            [0, *(1 - share for share in reversed(TOP_SHARES.values())), 1],
        ),
    }
    return Real({target.measure: target.real for target in TARGETS}, curves, frozenset())


def _curve(x: npt.ArrayLike, y: npt.ArrayLike) -> Curve:
    return np.asarray(list(x) if isinstance(x, range) else x, np.float64), np.asarray(y, np.float64)


def load_real_values(folder: str | Path | None) -> Real:
    """Return real values, computed from the data in a folder as far as they are there.

    Args:
        folder: With `cascades_voterfraud`, `usage_esm` and `follow_graph`; None: all values are carried.

    Raises:
        DataError: If the folder is missing, holds none of them, or a file cannot be read.
    """
    known = carried()
    if folder is None:
        return known
    if not Path(folder).is_dir():
        raise DataError(f"{folder}: no such folder")
    values, curves = dict[str, float](), dict[str, Curve]()
    parts = (
        (_SIZES, ("size", "n"), (), _of_sizes),
        (_USERS, ("activity_level", "mu"), (), _of_users),
        (_WINDOWS, ("used",), ("person", *_ACTS), _of_windows),
        (_GRAPH, (), ("src", "dst"), _of_graph),
    )
    for file, numbers, others, computed in parts:
        if (Path(folder) / file).is_file():
            own, drawn = computed(_read(Path(folder) / file, numbers, others))
            values |= own
            curves |= drawn
    if not values:
        names = ", ".join(str(file) for file, *_ in parts)
        raise DataError(f"{folder}: holds none of {names}")
    return Real({**known.values, **values}, {**known.curves, **curves}, frozenset(values))


def _read(file: Path, numbers: Sequence[str], others: Sequence[str]) -> pd.DataFrame:
    """Return a table that has some columns of numbers and some others, which are read as text, without a gap."""
    wanted, files = [*numbers, *others], FilesParams(max_bytes=_MOST_BYTES)
    try:
        check_size(file, _MOST_BYTES)
        header = read_header(file, wanted, files)
        for column in wanted:
            if column not in header.names:
                there = printable(", ".join(header.names[:_NAMES_SHOWN]))
                raise DataError(f"{file}: no column {column!r} (there is {there})")
        with opened(file, files) as stream:
            how: dict[str, Any] = {"sep": header.delimiter, "names": header.names, "header": 0, "low_memory": False}
            table = pd.read_csv(stream, usecols=wanted, dtype=dict.fromkeys(others, str), **how)
    except DataError:
        raise
    except (OSError, ValueError, EOFError, zlib.error) as error:
        told = next(iter(str(error).splitlines()), "it is empty")
        raise DataError(f"{file}: cannot be read as CSV: {printable(told)}") from None
    for column in wanted:
        if table[column].isna().any():
            raise DataError(f"{file}: column {column!r}: line {int(table[column].isna().argmax()) + 2} has no value")
    for column in numbers:
        if not pd.api.types.is_numeric_dtype(table[column]) or not table[column].between(0, _MOST).all():
            raise DataError(f"{file}: column {column!r}: give numbers from 0 on")
    if table.empty:
        raise DataError(f"{file}: has no lines below its head")
    return table[wanted]


type _Computed = tuple[dict[str, float], dict[str, Curve]]


def _of_sizes(table: pd.DataFrame) -> _Computed:
    """Return what a histogram of cascade sizes (`size`, `n`) says."""
    if not all(pd.api.types.is_integer_dtype(column) for _, column in table.items()):
        raise DataError(f"{_SIZES}: give whole numbers")
    if not 0 < table["n"].sum() <= _MOST_CASCADES:
        raise DataError(f"{_SIZES}: column 'n' adds up to {table['n'].sum():,}; 1 to {_MOST_CASCADES:,} can be read")
    sizes = np.repeat(table["size"].to_numpy(), table["n"].to_numpy())
    mean = float(sizes.mean())
    fit = fit_power_law(sizes, 10)
    values = {
        "post_tail_ks": fit.ks,
        "post_tail_p": plausibility(fit, 100),
        "post_size_1": float((sizes == 1).mean()),
        "post_size_2": float((sizes == 2).mean()),
        "post_size_mean": mean,
        "post_size_100": float((sizes >= 100).mean()),
        "post_tail_10": tail_exponent(sizes, 10).exponent,
        "post_tail_100": tail_exponent(sizes, 100).exponent,
        "post_reshares": mean - 1,
        "post_top_1": top_share(sizes - 1, 0.01),
    }
    return values, {"cascade_sizes": _curve(*ccdf(sizes))}


def _of_users(table: pd.DataFrame) -> _Computed:
    """Return what the activity of users (`activity_level`, and `mu`: which share of it are posts of their own) says."""
    table = table[table["activity_level"] >= 1]
    activity = table["activity_level"].to_numpy()
    values = {
        "written_gini": gini(activity),
        "written_top_1": top_share(activity, 0.01),
        "written_top_10": top_share(activity, 0.1),
        "written_only_reshares": float((table["mu"] == 0).mean()),
        "written_only_posts": float((table["mu"] == 1).mean()),
    }
    return values, {"activity": _curve(SHARES, lorenz(activity))}


def _of_windows(table: pd.DataFrame) -> _Computed:
    """Return what answers on windows of 30 minutes (`person`, `used`, and what was done) say."""
    used = table[table["used"] == 1]
    did = used[list(_ACTS)].astype(str).apply(lambda column: column.str.upper() == "TRUE")
    values = {f"window_{done}": float(did[done].mean()) for done in _ACTS}
    values["window_used"] = len(used) / len(table)
    values["window_none"] = float((~did.any(axis=1)).mean())
    shares = did["reshared"].groupby(used["person"]).mean()
    values["persons_reshared_sd"] = float(shares.std())
    values["persons_never_reshared"] = float((shares == 0).mean())
    return values, {}


def _of_graph(table: pd.DataFrame) -> _Computed:
    """Return what a graph of follows (`src`, `dst`: `dst` follows `src`) says."""
    ids, rows = np.unique(table[["src", "dst"]].to_numpy(), return_inverse=True)
    src, dst = rows.reshape(-1, 2).T
    n = len(ids)
    network = from_edges(src, dst, n)
    reciprocity, of_possible = follows.mutual_follows(network)
    return {
        "reciprocity": reciprocity,
        "mutual_of_possible": of_possible,
        "followers_followees": follows.degree_correlation(network),
        "clustering": follows.clustering(network),
        "degree_assortativity": follows.degree_assortativity(src, dst, n),
        "friendship_paradox": follows.friendship_paradox(src, dst, n),
    }, {}
