"""The report of a validation: a page of Markdown, with its figures."""

from collections.abc import Iterable, Sequence
from pathlib import Path

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
    computed = "computed from the data by the estimators that measured the runs"
    origin = f"{computed}; those with {words.CARRIED} are carried" if words.has_computed(validation.rows) else "carried"
    far = [row for row in validation.rows if row.inside and words.is_far(row)]
    times = ", ".join(f"{row.target.label} {words.number(row.ratio)} times" for row in far)
    captions = _captions(validation)
    parts = [
        f"# {validation.path.name}",
        f"**{words.joint(validation)}.**",
        _targets_table(validation.rows),
        f"*Real* values are {origin}. The interval is that of the mean over seeds; *seeds inside* counts the seeds "
        "whose value is allowed. *Same data* is another statistic of data of which something was fitted or given.",
        *([f"**Inside, but more than {words.FAR:g} times off the real value:** {times}."] if far else []),
        *(f"**{head.capitalize()}:** {data}." for head, data in words.data_used(validation).items()),
        *(_picture(name, captions[name]) for name in ("cascades", "rhythms", "shapes")),
        "## Shapes, and their conditions",
        _measures_table(validation),
    ]
    if validation.variants:
        parts += ["## What each variant breaks"]
        parts += [_picture("variants", captions["variants"])] if validation.judged else []
        parts.append(
            "\n".join(
                f"- `{name}`: {'; '.join(words.variant_lines(validation, name))}." for name in validation.variants
            )
        )
        for name, rows in validation.variants.items():
            parts += [f"### {name}", f"{VARIANTS[name].label}.", _targets_table(rows)]
    targets = [row.target for row in validation.rows if row.target.required]
    seeds = f"{validation.seeds[0]} to {validation.seeds[-1]}"
    parts += [
        "## Where the allowed ranges come from",
        f"{words.OWN_RANGES}: they state what PRISM regards as close enough.",
        "\n".join(f"- {target.label}: {RANGE_FROM[target.measure]}." for target in targets),
        "## Sources",
        "\n".join(f"- {source.title}: {source.what}. {source.reference}." for source in SOURCES.values()),
        "## Runs",
        f"Seeds {seeds}; every run's measures are in `runs.parquet`, its curves in `curves.parquet`.",
        *(f"- {printable(note)}" for note in validation.notes),
    ]
    return "\n\n".join(parts) + "\n"


def _picture(name: str, caption: str) -> str:
    return f"![{caption}](figures/{name}.png)\n\n{caption}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))


def _targets_table(rows: Sequence[Row]) -> str:
    return _table(words.HEADS, words.table_rows(rows))


def _measures_table(validation: Validation) -> str:
    """Return means over seeds of measures without targets, a column for the configuration and each variant."""
    arms = (FULL, *validation.variants)
    means = validation.runs.groupby("arm")[list(BESIDE)].mean()
    rows = [
        (f"`{name}`", find_measure(name).unit, *(words.number(float(means.loc[arm, name])) for arm in arms))
        for name in BESIDE
    ]
    return _table(("measure", "unit", *arms), rows)


def _captions(validation: Validation) -> dict[str, str]:
    exponent = next(row for row in validation.rows if row.target.measure == "post_tail_10")
    real, simulated = words.number(exponent.real), words.number(exponent.simulated)
    dashed = ", the variants dashed" if validation.variants else ""
    return {
        "cascades": f"Cascades of at least a size: real (black), simulated (mean and range of seeds){dashed}. "
        f"Exponents from 10: real {real}, simulated {simulated}. Beside it shapes of large cascades: real "
        "(black line), allowed (grey), mean and range of seeds, of variants as squares; without a mark there are too "
        "few large cascades.",
        "rhythms": "Hours of the day, in UTC or by agents' own clocks; the share of all activity of the least active; "
        f"reactions up to a delay; windows of use with each activity (no variants there){dashed}.",
        "shapes": "Depth, breadth and structural virality of cascades of equal size, and children per node at each "
        f"hop: simulated only{dashed}.",
        "variants": "Targets that the configuration and its variants miss: a sign above or below the allowed range, "
        "larger the farther; no sign: inside.",
    }
