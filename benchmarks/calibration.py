"""Whether calibration recovers known parameters: worlds are simulated, and fitted to their own measures.

A plain world (configs/plain.yaml) of 500 agents and 16 rounds, decided by rule; its four parameters are drawn, its
measures are means over 20 seeds that the fit does not have, and tolerances their standard deviations between seeds. It
prints what was true, what was fitted, and the interval; and asserts that most intervals hold the truth, and that what
has no effect is not identified.

    uv run python benchmarks/calibration.py             # 3 worlds of 100 trials of 2 seeds
    uv run python benchmarks/calibration.py --quick     # one of 40 trials
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from measuring import machine

from prism_mesa import Calibration, Study
from prism_mesa.streams import Streams
from prism_mesa.studies.calibration.surrogate import IDENTIFIED

PLAIN: Final = str(Path(__file__).parents[1] / "configs" / "plain.yaml")
WORLD: Final = {
    "agents.n": 500,
    "rounds": 16,
    "network.mean_degree": 10,
    "reasoner.kind": "rule",
    "agents.activity_sigma": 0.7,
    "network.follower_sigma": 1.0,
    "records.impressions": 0.0,
    "records.transitions": 0.0,
}
SPANS: Final = {
    "agents.activity": (0.1, 0.9),
    "agents.threshold_mean": (0.45, 0.7),
    "agents.post_rate": (0.05, 0.5),
    "agents.reshare": (0.1, 0.6),
}
IDLE: Final = {"network.blocks": [2, 12]}
"""A parameter without effect: the network has no blocks."""
MEASURES: Final = ("posts", "impressions", "likes", "replies", "reshares", "cascade_mean")
_DATA_SEEDS: Final = list(range(1001, 1021))


def truth(world: int) -> dict[str, float]:
    """Return the parameters of a world: within the middle 70 % of their ranges."""
    places = 0.15 + 0.7 * Streams(world).uniform("truth", list(range(len(SPANS))))
    return {
        key: round(low + float(place) * (high - low), 4)
        for place, (key, (low, high)) in zip(places, SPANS.items(), strict=True)
    }


def targets(true: dict[str, float], out: Path) -> dict[str, dict[str, Any]]:
    """Return what a world measures, as targets of a fit."""
    result = Study(
        question="What does the true world measure?",
        base=PLAIN,
        set=WORLD | true,
        measures=list(MEASURES),
        seeds=_DATA_SEEDS,
        keep="measures",
        name="truth",
        out=out,
    ).run(report=False)
    runs = result.runs[list(MEASURES)]
    return {
        name: {"target": float(runs[name].mean()), "tolerance": float(runs[name].std()), "data": "simulated"}
        for name in MEASURES
    }


def recovered(world: int, runs: int) -> tuple[int, float]:
    """Fit a world, print what came of it, and return how many intervals hold the truth and the largest error."""
    true = truth(world)
    with TemporaryDirectory() as folder:
        fit = targets(true, Path(folder))
        begun = time.perf_counter()
        spans = {key: list(span) for key, span in SPANS.items()} | IDLE
        calibration = Calibration(base=PLAIN, set=WORLD, parameters=spans, fit=fit, runs=runs, out=folder)
        result = calibration.run(report=False)
        took = time.perf_counter() - begun
    assert result.profiles is not None
    intervals = result.profiles.intervals.set_index("parameter")
    print(f"\nworld {world}: {len(result.trials)} trials, {result.runs} runs, {took:.0f} s on the wall")
    held, worst = 0, 0.0
    for key, (low, high) in SPANS.items():
        row = intervals.loc[key]
        inside = row["low"] <= true[key] <= row["high"]
        held += bool(inside)
        worst = max(worst, abs(row["fitted"] - true[key]) / (high - low))
        said = f"{row['low']:.3f} to {row['high']:.3f}, {'holds' if inside else 'MISSES'} the truth; {row['verdict']}"
        print(f"  {key:<24} true {true[key]:.3f}  fitted {row['fitted']:.3f}  {said}")
    [idle] = IDLE
    print(f"  {idle:<24} no effect: {intervals.loc[idle, 'verdict']}")
    print(f"  targets inside with new seeds: {int(result.measures['inside'].sum())} of {len(result.measures)}")
    assert intervals.loc[idle, "verdict"] != IDENTIFIED
    return held, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one world, 40 trials")
    quick = parser.parse_args().quick
    print(machine("optuna", "scipy"))
    found = [recovered(world, 80 if quick else 200) for world in range(1, 2 if quick else 4)]
    held, n = sum(one[0] for one in found), len(found) * len(SPANS)
    print(f"\n{held} of {n} intervals hold the truth; largest error {max(one[1] for one in found):.1%} of the range")
    assert held >= 0.75 * n
    assert np.median([one[1] for one in found]) < 0.15


if __name__ == "__main__":
    main()
