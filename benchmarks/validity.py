"""Tables of benchmarks/VALIDITY.md, from the folders of validations and of the sensitivity study.

Hours of computing, each continued by the same command (a seed of 200,000 agents: some 3 CPU minutes and 4.2 GB):

    uv run prism validate configs/calibrated.yaml --seeds 20 --data ../shared/data
    uv run prism validate configs/calibrated.yaml agents.n=60000 --seeds 3 --variant nulls --data ../shared/data
    uv run prism validate configs/calibrated.yaml agents.n=60000 reasoner.kind=distilled \
        reasoner.distilled=configs/studies/smollm2.json --data ../shared/data
    uv run prism study run configs/studies/sensitivity.yaml

Then, printed as Markdown, a part for each folder:

    uv run python benchmarks/validity.py results/validation-calibrated-* results/sensitivity
"""

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import yaml

from prism_mesa.errors import DataError, PrismError
from prism_mesa.studies.validation.targets import TARGETS
from prism_mesa.studies.validation.variants import VARIANTS
from prism_mesa.view.study.numbers import significant as number
from prism_mesa.view.validation.report import ROLES

HEAD: Final = ("target", "role", "real", "simulated", "95 % interval", "allowed", "inside")
WIDTHS: Final = {target.measure: target.high - target.low for target in TARGETS if target.required}
"""From the lowest allowed value of each required target to its highest."""

type Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description="tables of validations and of Morris studies as Markdown")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    try:
        print("\n\n".join(part for folder in parser.parse_args().folders for part in split_parts(folder)))
    except PrismError as error:
        parser.exit(2, f"{error}\n")


def split_parts(folder: Path) -> list[str]:
    """Return the tables of a folder, each after its title."""
    if (folder / "validation.json").is_file():
        found = json.loads((folder / "validation.json").read_text(encoding="utf-8"))
        return [f"## {folder.name}", verdict(found), table(HEAD, map(target_cells, found["targets"])), *variants(found)]
    if (folder / "runs.parquet").is_file():
        return [f"## {folder.name}", *morris(folder)]
    raise DataError(f"{folder}: neither a validation (validation.json) nor a study that was run (runs.parquet)")


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ("---",) * len(head), *lines))


def shown(value: float | None) -> str:
    """Return a number as the reports have it; a dash for none."""
    return "-" if value is None else number(value)


def verdict(found: Row) -> str:
    """Return how many required targets are inside, and of which no judgement is made."""
    required = [row for row in found["targets"] if row["required"]]
    judged = [row for row in required if row["inside"] is not None]
    inside = sum(row["inside"] for row in judged)
    told = f"{inside} of {len(judged)} targets inside, jointly, as means over {len(found['seeds'])} seeds"
    left = [row["told"] for row in required if row["inside"] is None]
    return told + (f"; not applicable: {', '.join(left)}" if left else "") + "."


def target_cells(row: Row) -> tuple[str, ...]:
    """Return a target as the cells of `HEAD`."""
    interval = f"{shown(row['low'])} to {shown(row['high'])}" if row["low"] is not None else "-"
    allowed = f"{shown(row['from'])} to {shown(row['to'])}" if row["from"] is not None else "-"
    if row["not_applicable"]:
        inside = f"not applicable: {row['not_applicable']}"
    elif row["inside"] is None:
        inside = "informs" if row.get("ratio") is None else f"informs: {shown(row['ratio'])} times the real"
    else:
        share = "" if row["share_inside"] is None else f" ({row['share_inside']:.0%} of seeds)"
        inside = ("yes" if row["inside"] else "**no**") + share
    of = row.get("of_seeds", row["seeds"])
    simulated = shown(row["simulated"]) + (f" (in {row['seeds']} of {of} seeds)" if 0 < row["seeds"] < of else "")
    return row["told"], ROLES[row["role"]], shown(row["real"]), simulated, interval, allowed, inside


def variants(found: Row) -> list[str]:
    """Return a table of which targets each variant misses that the full model reaches; none without variants."""
    reached = {row["measure"] for row in found["targets"] if row["inside"]}
    lines = []
    for name, rows in found["variants"].items():
        lost = [row for row in rows if row["required"] and row["inside"] is False and row["measure"] in reached]
        broken = ", ".join(f"{row['told']} {shown(row['simulated'])}" for row in lost) or "nothing"
        match = found["matches"].get(name)
        small = f"{match['ratio']:.2f}" if match else "not matched"
        lines.append((f"`{name}`", VARIANTS[name].label, shown(found.get("rates", {}).get(name)), small, broken))
    head = ("variant", "what is so", "reshares per impression, x the full model", "in the small runs", "breaks")
    return [table(head, lines)] if lines else []


def morris(folder: Path) -> list[str]:
    """Return mu* of each parameter and target, as a multiple of how wide the target is; targets are columns.

    An elementary effect is the change over the whole range of a parameter (Morris 1991); mu* the mean of its absolute
    values over trajectories.

    Raises:
        DataError: If the study's design is not Morris'.
    """
    vary = yaml.safe_load((folder / "study.yaml").read_text(encoding="utf-8")).get("vary") or {}
    runs = pd.read_parquet(folder / "runs.parquet")
    place = runs.groupby(["arm", "seed"], sort=False).cumcount()  # points in the order of the plan, as often as drawn
    points = runs.groupby(place).mean(numeric_only=True)
    measures = [name for name in WIDTHS if name in points]
    found: dict[tuple[str, str], list[float]] = {}
    steps = len(vary) + 1
    if not vary or len(points) % steps:
        raise DataError(f"{folder}: {len(points)} points of {len(vary)} parameters are no trajectories of Morris'")
    for at in (at for at in range(len(points) - 1) if (at + 1) % steps):
        before, after = points.iloc[at], points.iloc[at + 1]
        moved = [key for key in vary if before[key] != after[key]]
        if len(moved) != 1:
            raise DataError(f"{folder}: points {at} and {at + 1} differ in {len(moved)} parameters: not Morris' design")
        [key] = moved
        share = (after[key] - before[key]) / (vary[key][1] - vary[key][0])
        for name in measures:
            found.setdefault((key, name), []).append(abs(after[name] - before[name]) / abs(share) / WIDTHS[name])
    gaps = {name: int(points[name].isna().sum()) for name in measures}
    lines = [(f"`{key}`", *(mean_text(found[key, name]) for name in measures)) for key in vary]
    told = f"mu* over {len(points) // steps} trajectories; 1 is as much as the target is wide, from lowest to highest."
    left = ", ".join(f"{name} (in {n} of {len(points)} points)" for name, n in gaps.items() if n)
    return [told + (f" Without a value: {left}." if left else ""), table(("parameter", *measures), lines)]


def mean_text(effects: Sequence[float]) -> str:
    """Return the mean of effects; a dash if one of them is not known."""
    return shown(float(np.mean(effects)))


if __name__ == "__main__":
    main()
