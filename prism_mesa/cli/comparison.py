"""The command that compares runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Option

from prism_mesa.cli.arguments import AsJson, OutOption, Trust
from prism_mesa.errors import BadInputError, did_you_mean
from prism_mesa.terminal import show_json, show_line

WITH: Final = "--with"
_OPTIONS: Final = (WITH, "--out", "--all", "--why", "--no-why", "--trust", "--json", "--measure")

Sides = Annotated[
    list[str],
    Argument(
        metavar="BASE|--with OTHER",
        help="two runs, or runs of several seeds on both sides of --with, or folders of runs",
    ),
]


def compare(
    arguments: Sides,
    measure: Annotated[
        list[str] | None,
        Option(
            metavar="NAME", help="a measure from `prism study measures`; repeat the option for several; by default all"
        ),
    ] = None,
    show_all: Annotated[bool, Option("--all", help="show every measure that differs")] = False,
    why: Annotated[
        bool, Option("--why/--no-why", help="repeat both runs up to the point where they diverge, and explain why")
    ] = True,
    out: OutOption = Path("results"),
    trust: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Compare runs: what differs, what diverged first, and why.

    It compares settings, measures and rounds. The report goes to OUT/compare-<names>.
    """
    base, other = split_sides(arguments)

    from prism_mesa.api.comparison import compare as compare_runs
    from prism_mesa.view.comparison.words import comparison_lines

    comparison = compare_runs(base, other, measures=measure, why=why, trust=trust)
    folder = comparison.write(out)
    if as_json:
        show_json(comparison.as_json() | {"folder": str(folder)})
        return
    for line in comparison_lines(comparison, show_all=show_all):
        show_line(line)
    show_line(f"kept: {folder} (report.md, comparison.json, rounds.png, rounds.pdf)")


def split_sides(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the two sides: arguments before and after ``--with``, else two runs, or runs grouped by configuration."""
    for argument in arguments:
        if argument.startswith("-") and argument != WITH:
            raise BadInputError(f"no such option: {argument}.{did_you_mean(argument, _OPTIONS)}")
    if arguments.count(WITH) > 1:
        raise BadInputError("--with: is given more than once: BASE... --with OTHER... has two sides")
    if WITH in arguments:
        index = list(arguments).index(WITH)
        both_sides = list(arguments[:index]), list(arguments[index + 1 :])
        if not all(both_sides):
            raise BadInputError("--with: one side has no run: give prism compare BASE... --with OTHER...")
        return both_sides
    if len(arguments) < 2:
        raise BadInputError(f"{arguments[0]}: is one run: give a second run to compare it with: prism compare RUN RUN")
    if len(arguments) == 2:
        return [arguments[0]], [arguments[1]]

    from prism_mesa.studies.comparison.pairs import sides_by_settings

    left, right = sides_by_settings(arguments)
    return list(map(str, left)), list(map(str, right))
