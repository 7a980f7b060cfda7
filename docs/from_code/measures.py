"""All measures of a finished run."""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import isinf

from prism_mesa.studies.measures.catalogue import Measure


def sections(subjects: Mapping[str, Sequence[Measure]]) -> str:
    """Return a section for each subject."""
    return "\n".join(f"## {subject}\n\n{table(measures)}" for subject, measures in subjects.items())


def table(measures: Iterable[Measure]) -> str:
    """Return a row for each measure."""
    head = "| measure | unit | range | meaning |\n|---|---|---|---|\n"
    return head + "".join(
        f"| `{measure.name}` | {measure.unit} | {_range(measure)} | {_meaning(measure)} |\n" for measure in measures
    )


def _range(measure: Measure) -> str:
    """Return the range of a measure in words."""
    if isinf(measure.low) and isinf(measure.high):
        return "any number"
    return f"from {measure.low:g}" if isinf(measure.high) else f"{measure.low:g} .. {measure.high:g}"


def _meaning(measure: Measure) -> str:
    """Return the meaning of a measure with its source."""
    source = re.sub(r"doi:(\S+)", r"[doi:\1](https://doi.org/\1)", measure.source)
    return f"{measure.meaning} ({source})" if source else measure.meaning
