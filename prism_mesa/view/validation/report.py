"""The report of a validation: a page of Markdown, with its figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from prism_mesa.errors import printable
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.studies.folder import write_text
from prism_mesa.studies.measures.catalogue import find_measure
from prism_mesa.studies.validation.targets import RANGE_FROM, SOURCES
from prism_mesa.studies.validation.validation import BESIDE, Row, Validation
from prism_mesa.studies.validation.variants import FULL, VARIANTS
from prism_mesa.view.plots.files import to_png
from prism_mesa.view.validation import words
from prism_mesa.view.validation.figures import validation_figures

_MATRIX: Final = (
    "Which targets the configuration and its variants miss: a sign above or below what is allowed, larger the farther; "
    "no sign: inside."
)


def write_report(validation: Validation) -> Path:
    """Write report.md and its figures into the folder of a validation; return the page."""
    make_folder(validation.path / "figures")
    for name, figure in validation_figures(validation).items():
        (validation.path / "figures" / f"{name}.png").write_bytes(to_png(figure))
    page = validation.path / "report.md"
    write_text(page, markdown(validation))
    return page


def markdown(validation: Validation) -> str:
    """Return the report as Markdown."""
    parts = [f"# {validation.path.name}", f"**{words.joint(validation)}.**", _table(validation.rows)]
    origin = "computed from the data by the estimators that measured the runs; those with"
    origin = f"{origin} {words.CARRIED} are carried" if words.is_marked(validation.rows) else "carried"
    parts.append(
        f"*Real* values are {origin}. The interval is that of the mean over seeds; *seeds inside* are those whose own "
        "value is allowed. *Same data* is another statistic of data of which something was fitted or given."
    )
    far = [row for row in validation.rows if row.inside and words.is_far(row)]
    if far:
        times = ", ".join(f"{row.target.label} {words.number(row.ratio)} times" for row in far)
        parts.append(f"**Inside, but more than {words.FAR:g} times off the real value:** {times}.")
    parts += [f"**{words.USED[role].capitalize()}:** {text}." for role, text in words.data_used(validation).items()]
    parts += [f"![{text}](figures/{name}.png)\n\n{text}" for name, text in _captions(validation).items()]
    parts += ["## Shapes, and what they hang on", _beside(validation)]
    if validation.variants:
        parts += ["## Without what, what breaks"]
        parts += [f"![{_MATRIX}](figures/variants.png)\n\n{_MATRIX}"] if validation.judged else []
        lines = {name: "; ".join(words.variant_lines(validation, name)) for name in validation.variants}
        parts.append("\n".join(f"- `{name}`: {line}." for name, line in lines.items()))
        parts += [
            f"### {name}\n\n{VARIANTS[name].label}.\n\n{_table(rows)}" for name, rows in validation.variants.items()
        ]
    targets = [row.target for row in validation.rows]
    parts += [
        "## Where the allowed ranges come from",
        f"{words.OWN_RANGES}: they say what PRISM takes for near enough.",
        "\n".join(f"- {item.label}: {RANGE_FROM[item.measure]}." for item in targets if item.required),
        "## Sources",
        "\n".join(f"- {item.title}: {item.what}. {item.reference}." for item in SOURCES.values()),
    ]
    seeds = f"{validation.seeds[0]} to {validation.seeds[-1]}"
    parts += ["## Runs", f"Seeds {seeds}; every run's measures are in `runs.parquet`, its curves in `curves.parquet`."]
    parts += [f"- {printable(note)}" for note in validation.notes]
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Row]) -> str:
    lines = [words.HEAD, ("---",) * len(words.HEAD), *(words.cells(row, words.is_marked(rows)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _beside(validation: Validation) -> str:
    """Return means over seeds of measures without targets, a column for the configuration and each variant."""
    arms = (FULL, *validation.variants)
    means = validation.runs.groupby("arm")[list(BESIDE)].mean()
    lines = [("measure", "unit", *arms), ("---",) * (2 + len(arms))]
    lines += [
        (f"`{name}`", find_measure(name).unit, *(words.number(float(means.loc[arm, name])) for arm in arms))
        for name in BESIDE
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _captions(validation: Validation) -> dict[str, str]:
    rows = {row.target.measure: row for row in validation.rows}
    exponent = rows["post_tail_10"]
    real, simulated = words.number(exponent.real), words.number(exponent.simulated)
    beside = ", the variants dashed" if validation.variants else ""
    return {
        "cascades": f"Cascades of at least a size: real (black), simulated (mean and range of seeds){beside}. "
        f"Exponents from 10: real {real}, simulated {simulated}. Beside it shapes of large cascades: real "
        "(black line), allowed (grey), mean and range of seeds, of variants as squares; without a mark there are too "
        "few large cascades.",
        "rhythms": "Hours of the day, in UTC or by agents' own clocks; what the least active hold of all activity; "
        f"reactions up to a delay; windows of use in which a thing was done (no variants there){beside}.",
        "shapes": "Depth, breadth and structural virality of cascades of equal size, and children per node at each "
        f"hop: simulated only{beside}.",
    }
