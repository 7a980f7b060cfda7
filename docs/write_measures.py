"""The page of measures, made from the catalogue by which they are taken.

uv run python docs/write_measures.py
"""

import re
from collections.abc import Sequence
from math import isinf
from pathlib import Path

from prism_mesa.studies.measures.by_attribute import BY_ATTRIBUTE
from prism_mesa.studies.measures.catalogue import SUBJECTS, Measure

PAGE = Path(__file__).parent / "measures.md"
INTRO = """# Measures

Named numbers of a finished run: what studies compare (`measures:` in a study file), and `measure` returns. This page is
made (`uv run python docs/write_measures.py`) from the catalogue in `prism_mesa/studies/measures/`.

```python
>>> from prism_mesa import measure, run
>>> result = run({"agents.n": 100, "rounds": 12}, pictures=False)
>>> measure(result, ["gini_impressions", "cascade_mean"]).round(2).to_dict()
{'gini_impressions': 0.92, 'cascade_mean': 1.55}

```

A measure is NaN where it is not defined: a mean without anything to take it of, a tail of too few. Tables may hold a
sample of the agents (`records.*`; impressions of more than 100,000 agents): each measure says what it is then.

**Your own** is a function of a `FinishedRun`, named `module:function`. It has the run's `config`, its `summary` (what
`prism run --json` prints), `table(name)` for each of [its tables](tables.md), and `follows()`, whose columns are `src`
and `dst` (`dst` follows `src`). It returns a number, or NaN. In a file `my_measures.py` beside the study:

```python
>>> def replies_per_post(run):
...     done = run.summary["engagement"]
...     return done["replies"] / done["posts"]

```

    measures: [gini_impressions, my_measures:replies_per_post]

Its module is imported from where you start `prism`, from the study's folder, or from what is installed, never from the
folder of a run.
"""


BY = """## By an attribute

With the name of an [attribute](attributes.md) of agents in the place of `NAME`, as in `follow_ei@leaning`:

"""


def page() -> str:
    """Return the page."""
    parts = [f"## {subject}\n\n{_table(measures)}" for subject, measures in SUBJECTS.items()]
    parts.append(BY + _table([made("NAME") for made in BY_ATTRIBUTE.values()]))
    return "\n".join([INTRO, *parts])


def _table(measures: Sequence[Measure]) -> str:
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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
