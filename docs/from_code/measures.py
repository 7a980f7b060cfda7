"""All measures of a finished run, from the catalogue by which they are taken."""

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
    return head + "".join(f"| `{one.name}` | {one.unit} | {_range(one)} | {_meaning(one)} |\n" for one in measures)


def _range(one: Measure) -> str:
    """Return from where to where a measure can go."""
    if isinf(one.low) and isinf(one.high):
        return "any number"
    return f"from {one.low:g}" if isinf(one.high) else f"{one.low:g} .. {one.high:g}"


def _meaning(one: Measure) -> str:
    """Return what a measure is, with its source."""
    source = re.sub(r"doi:(\S+)", r"[doi:\1](https://doi.org/\1)", one.source)
    return f"{one.meaning} ({source})" if source else one.meaning
