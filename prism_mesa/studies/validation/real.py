"""Real values: built into PRISM, or computed from data with the estimators that measures use."""

import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.errors import DataError, printable
from prism_mesa.runs.measures import ccdf, gini, tail_exponent, top_share
from prism_mesa.social.params import FilesParams
from prism_mesa.social.state.network import from_edges
from prism_mesa.social.world.csv_files import read_header
from prism_mesa.social.world.unpacking import check_size, open_text
from prism_mesa.studies.estimators import graphs
from prism_mesa.studies.estimators.power_law import fit_power_law, plausibility
from prism_mesa.studies.measures.curves import SHARES, lorenz
from prism_mesa.studies.measures.rhythms import CONGRESS_HOURS
from prism_mesa.studies.validation.targets import DELAYS, QUANTILES, SIZES, TARGETS, TOP_SHARES

type Curve = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

_SIZES: Final = Path("cascades_voterfraud") / "cascade_size_histogram.csv"
_USERS: Final = Path("cascades_voterfraud") / "users.csv.gz"
_WINDOWS: Final = Path("usage_esm") / "usage.csv.gz"
_GRAPH: Final = Path("follow_graph") / "verizoncareers_edges.csv.gz"
_MAX_BYTES: Final = 2_000_000_000
_MAX_NUMBER: Final = 2**53
_MAX_CASCADES: Final = 100_000_000
_NAMES_SHOWN: Final = 20
_ACTIONS: Final = ("liked", "reshared", "replied", "posted")


@dataclass(frozen=True)
class RealValues:
    """Real values by measure, and curves by name (see `measures.curves`); `computed` has the measures from data."""

    values: Mapping[str, float]
    curves: Mapping[str, Curve]
    computed: frozenset[str]


def built_in_values() -> RealValues:
    """Return the real values that are built into PRISM."""
    curves = {
        "cascade_sizes": _make_curve(list(SIZES), list(SIZES.values())),
        "delays": _make_curve(DELAYS, QUANTILES),
        "hours": _make_curve(range(24), CONGRESS_HOURS),
        "activity": _make_curve(
            [0, *(1 - top for top in reversed(TOP_SHARES)), 1],
            [0, *(1 - share for share in reversed(TOP_SHARES.values())), 1],
        ),
    }
    return RealValues({target.measure: target.real for target in TARGETS}, curves, frozenset())


def _make_curve(x: npt.ArrayLike, y: npt.ArrayLike) -> Curve:
    return np.asarray(list(x) if isinstance(x, range) else x, np.float64), np.asarray(y, np.float64)


def load_real_values(folder: str | Path | None) -> RealValues:
    """Return real values, computed from the data in `folder` (`cascades_voterfraud`, `usage_esm`, `follow_graph`)."""
    built_in = built_in_values()
    if folder is None:
        return built_in
    if not Path(folder).is_dir():
        raise DataError(f"{folder}: no such folder")
    values, curves = dict[str, float](), dict[str, Curve]()
    sources = (
        (_SIZES, ("size", "n"), (), _values_from_sizes),
        (_USERS, ("activity_level", "mu"), (), _values_from_users),
        (_WINDOWS, ("used",), ("person", *_ACTIONS), _values_from_windows),
        (_GRAPH, (), ("src", "dst"), _values_from_graph),
    )
    for file, numbers, texts, compute in sources:
        if (Path(folder) / file).is_file():
            new_values, new_curves = compute(_read_columns(Path(folder) / file, numbers, texts))
            values |= new_values
            curves |= new_curves
    if not values:
        raise DataError(f"{folder}: holds none of {', '.join(str(file) for file, *_ in sources)}")
    return RealValues({**built_in.values, **values}, {**built_in.curves, **curves}, frozenset(values))


def _read_columns(file: Path, numbers: Sequence[str], texts: Sequence[str]) -> pd.DataFrame:
    """Return the named columns of a CSV table: numbers of at least 0, and strings; no value may be missing."""
    names, files = [*numbers, *texts], FilesParams(max_bytes=_MAX_BYTES)
    try:
        check_size(file, _MAX_BYTES)
        header = read_header(file, names, files)
        if missing_columns := [column for column in names if column not in header.names]:
            present = printable(", ".join(header.names[:_NAMES_SHOWN]))
            raise DataError(f"{file}: no column {missing_columns[0]!r} (there is {present})")
        with warnings.catch_warnings(), open_text(file, files) as stream:
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a row is longer than the header
            types = dict.fromkeys(texts, str)
            table = pd.read_csv(stream, sep=header.delimiter, index_col=False, dtype=types, low_memory=False)
        table = table.set_axis(header.names, axis=1)[names]
    except DataError:
        raise
    except (OSError, ValueError, EOFError, zlib.error, pd.errors.ParserWarning) as error:
        reason = next(iter(str(error).splitlines()), "it is empty")
        raise DataError(f"{file} cannot be read as CSV: {printable(reason)}") from None
    for column, is_missing in table.isna().items():
        if is_missing.any():
            raise DataError(f"{file}: column {column!r}: line {int(is_missing.argmax()) + 2} has no value")
    for column in numbers:
        if not pd.api.types.is_numeric_dtype(table[column]) or not table[column].between(0, _MAX_NUMBER).all():
            raise DataError(f"{file}: column {column!r}: give numbers of at least 0")
    if table.empty:
        raise DataError(f"{file} has no rows")
    return table


type _Computed = tuple[dict[str, float], dict[str, Curve]]


def _values_from_sizes(table: pd.DataFrame) -> _Computed:
    """Return the values of a histogram of cascade sizes (`size`, `n`)."""
    if not all(pd.api.types.is_integer_dtype(column) for _, column in table.items()):
        raise DataError(f"{_SIZES}: give whole numbers")
    if not 0 < table["n"].sum() <= _MAX_CASCADES:
        raise DataError(f"{_SIZES}: column 'n': must add up to 1 to {_MAX_CASCADES:,}, not {table['n'].sum():,}")
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
    return values, {"cascade_sizes": _make_curve(*ccdf(sizes))}


def _values_from_users(table: pd.DataFrame) -> _Computed:
    """Return the values of users' activity (`activity_level`; `mu` is the share of posts in it)."""
    table = table[table["activity_level"] >= 1]
    activity = table["activity_level"].to_numpy()
    values = {
        "written_gini": gini(activity),
        "written_top_1": top_share(activity, 0.01),
        "written_top_10": top_share(activity, 0.1),
        "written_only_reshares": float((table["mu"] == 0).mean()),
        "written_only_posts": float((table["mu"] == 1).mean()),
    }
    return values, {"activity": _make_curve(SHARES, lorenz(activity))}


def _values_from_windows(table: pd.DataFrame) -> _Computed:
    """Return the values of windows of 30 minutes (`person`, `used`, and actions)."""
    used_windows = table[table["used"] == 1]
    actions = used_windows[list(_ACTIONS)].astype(str).apply(lambda column: column.str.upper() == "TRUE")
    values = {f"window_{action}": float(actions[action].mean()) for action in _ACTIONS}
    values["window_used"] = len(used_windows) / len(table)
    values["window_none"] = float((~actions.any(axis=1)).mean())
    shares = actions["reshared"].groupby(used_windows["person"]).mean()
    values["persons_reshared_sd"] = float(shares.std())
    values["persons_never_reshared"] = float((shares == 0).mean())
    return values, {}


def _values_from_graph(table: pd.DataFrame) -> _Computed:
    """Return the values of a graph of follows (`src`, `dst`: `dst` follows `src`)."""
    ids, rows = np.unique(table[["src", "dst"]].to_numpy(), return_inverse=True)
    src, dst = rows.reshape(-1, 2).T
    n = len(ids)
    network = from_edges(src, dst, n)
    reciprocity, share_of_possible = graphs.mutual_follows(network)
    return {
        "reciprocity": reciprocity,
        "mutual_of_possible": share_of_possible,
        "followers_followees": graphs.degree_correlation(network),
        "clustering": graphs.clustering(network),
        "degree_assortativity": graphs.degree_assortativity(src, dst, n),
        "friendship_paradox": graphs.friendship_paradox(src, dst, n),
    }, {}
