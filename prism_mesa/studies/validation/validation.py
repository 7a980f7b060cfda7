"""A configuration validated: run with several seeds, beside its variants, and held against real values."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final

import pandas as pd

from prism_mesa.errors import ConfigError, RunError, one_line
from prism_mesa.runs.config import Config
from prism_mesa.runs.identity import code_version, digest, identity_of
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.studies.collect import run_table
from prism_mesa.studies.design.study_design import StudyDesign, design_study
from prism_mesa.studies.driver import Engine, Progress
from prism_mesa.studies.folder import StudyFolder, describe_study, open_folder, write_text
from prism_mesa.studies.measures.curves import CURVES
from prism_mesa.studies.params import study_params
from prism_mesa.studies.study import run_study
from prism_mesa.studies.validation.real import Real
from prism_mesa.studies.validation.rows import Row, as_json, target_rows, why_not
from prism_mesa.studies.validation.targets import TARGETS, Target, targets_fitted
from prism_mesa.studies.validation.variants import (
    FULL,
    KEY,
    STEPS,
    VARIANTS,
    Match,
    matched_threshold,
    reshare_rate,
    worlds,
)

VALIDATION: Final = "validation.json"
_MATCHED: Final = "matched.json"
_RECORDED: Final = 6_000
"""Of more agents, as many have their transitions recorded, and as large a share of posts has its views counted, if the
configuration does not say."""

_BESIDE: Final = ("agents", "followees_mean", "post_impressions", "reproduction_0", "reproduction_1", "reproduction_2")
_SHAPES: Final = (
    *("reproduction_later", "large_breadth", "shape_depth", "shape_breadth", "shape_virality"),
    "reshares_per_impression",
)
BESIDE: Final = (*_BESIDE, *_SHAPES)  # what helps to read the table: predicted shapes, and what they hang on
MEASURES: Final = tuple(dict.fromkeys([*(target.measure for target in TARGETS), *BESIDE]))
"""What is measured of each run."""


@dataclass(frozen=True, repr=False)
class Validation:
    """What a validation came to.

    Attributes:
        path: Its folder.
        config: The configuration.
        seeds: Of all conditions.
        rows: The table of the configuration itself.
        variants: Those of its variants, by name.
        matches: Of the variants whose threshold was moved, where to.
        curves: Distributions of all runs (`measures.curves`), with `arm` and `seed`.
        runs: A row for each run, with all that was measured.
        real: Real values and curves.
        notes: What a reader should know.
    """

    path: Path
    config: Config
    seeds: tuple[int, ...]
    rows: tuple[Row, ...]
    variants: Mapping[str, tuple[Row, ...]]
    matches: Mapping[str, Match]
    curves: pd.DataFrame
    runs: pd.DataFrame
    real: Real
    notes: tuple[str, ...]

    @property
    def outside(self) -> tuple[Row, ...]:
        """Required targets that the configuration misses."""
        return tuple(row for row in self.rows if row.fails)

    @property
    def judged(self) -> int:
        """How many required targets apply to it."""
        return sum(row.inside is not None for row in self.rows)

    @property
    def rates(self) -> dict[str, float]:
        """Reshares per impression that each variant reached in the runs compared here, as a multiple of the model's."""
        means = self.runs.groupby("arm")["reshares_per_impression"].mean()
        full = float(means[FULL])
        return {name: float(means[name]) / full if full else nan for name in self.variants}

    @property
    def passed(self) -> bool:
        """Whether all required targets that apply are inside, jointly; not if none applies."""
        return self.judged > 0 and not self.outside

    @one_line
    def __repr__(self) -> str:
        inside = self.judged - len(self.outside)
        return f"<Validation {inside} of {self.judged} targets inside, {len(self.seeds)} seeds, {self.path}>"


def prepared(config: Config) -> Config:
    """Return a configuration as it is validated: views are counted, and of many agents samples are recorded.

    Results do not depend on it. Shares that the configuration sets stay, but views are always counted.
    """
    share = min(1.0, _RECORDED / config.agents.n)
    records: dict[str, float] = {} if config.records.views else {"views": share}
    if config.records.transitions is None and share < 1:
        records["transitions"] = share
    return config.model_copy(update={"records": config.records.model_copy(update=records)})


def validation_folder(config: Config, name: str, out: str | Path) -> Path:
    """Return the folder of a configuration's validation, ``out/validation-<name>-<digest>``."""
    identity = identity_of(prepared(config))
    return Path(out) / f"validation-{name[:30]}-{digest(identity.config, identity.data)[:8]}"


def validate(
    config: Config,
    name: str,
    real: Real,
    *,
    seeds: int = 3,
    variants: Sequence[str] = (),
    fitted: Collection[str] | None = None,
    out: str | Path = "results",
    engine: Engine,
    on_run: Callable[[Progress], object] = lambda progress: None,
    on_match: Callable[[int, int], object] = lambda done, of: None,
) -> Validation:
    """Run what is missing, and return what came out; ``validation.json`` of the folder holds the tables.

    Arguments are those of `api.validation.validate`, checked: names of variants, real values, and who runs the runs.

    Raises:
        ConfigError: If a variant is no configuration.
        DataError: If the folder cannot be used.
        RunError: If a run failed; what was done is kept.
    """
    config = prepared(config)
    numbers = range(config.seed, config.seed + seeds)
    alone = _design(config, validation_folder(config, name, out).name, numbers, (), {})
    kept = open_folder(alone, out)
    make_folder(kept.path)
    describe_study(alone, kept, "")
    matches = _matches(config, variants, kept.path, on_match)
    design = _design(config, alone.name, numbers, variants, matches)
    result = run_study(design, kept, engine, on_run=on_run)
    runs = run_table(design, kept).runs
    done = _done(runs, kept.path)
    rows, others = _tables(config, done, real, variants, targets_fitted(fitted))
    curves, notes = pd.read_parquet(kept.table(CURVES)), _notes(result.notes, rows)
    found = Validation(kept.path, config, tuple(numbers), rows, others, matches, curves, done, real, notes)
    _write(found, kept)
    return found


def _done(runs: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return the runs, once it is known that none failed."""
    done = runs[runs["status"] == "done"]
    if len(done) < len(runs):
        reason = runs.loc[runs["status"] != "done", "reason"].iloc[0]
        raise RunError(f"{path}: {len(runs) - len(done)} of {len(runs)} runs failed; the first one: {reason}")
    return done


def _notes(notes: Sequence[str], rows: Sequence[Row]) -> tuple[str, ...]:
    """Return what a study noted, without what the table says: that a measure which does not apply is no number."""
    known = tuple(f"{row.target.measure}: not a number" for row in rows if row.why_not)
    return tuple(note for note in notes if not note.startswith(known or ("\0",)))


def _tables(
    config: Config, done: pd.DataFrame, real: Real, variants: Sequence[str], targets: Sequence[Target]
) -> tuple[tuple[Row, ...], dict[str, tuple[Row, ...]]]:
    """Return the tables of the full model and of its variants, to which the same targets apply."""
    full = done[done["arm"] == FULL]
    size = float(full["agents"].mean()), float(full["followees_mean"].mean())

    def excused(target: Target) -> str:
        return why_not(target, config, *size)

    others = {name: target_rows(done[done["arm"] == name], real, excused, targets) for name in variants}
    return target_rows(full, real, excused, targets), others


def _design(
    config: Config, name: str, seeds: Sequence[int], variants: Sequence[str], matches: Mapping[str, Match]
) -> StudyDesign:
    moved = {one: {KEY: match.threshold} for one, match in matches.items()}
    arms: dict[str, dict[str, Any]] = {FULL: {}}
    arms |= {variant: {**VARIANTS[variant].overrides, **moved.get(variant, {})} for variant in variants}
    values = {
        "question": f"Is {name} inside what is known of real platforms?",
        "base": config.model_dump(mode="json", exclude={"seed": True}),
        "arms": arms,
        "seeds": list(seeds),
        "measures": list(MEASURES),
        "keep": "measures",
        "collect": [CURVES],
    }
    return design_study(study_params(values, "validate"), name, "validate")


def _matches(
    config: Config, variants: Sequence[str], folder: Path, on_match: Callable[[int, int], object]
) -> dict[str, Match]:
    """Return where the thresholds of variants are moved; what was found before is read from the folder."""
    asked = [name for name in variants if VARIANTS[name].matched]
    if not asked:
        return {}
    file = folder / _MATCHED
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if known.get("code") != code_version():
        known = {"code": code_version(), "variants": {}}
    told = {name: json.dumps(dict(VARIANTS[name].overrides), sort_keys=True) for name in asked}
    missing = [name for name in asked if known["variants"].get(name, {}).get("overrides") != told[name]]
    for name, found in _found_matches(config, missing, on_match):
        known["variants"][name] = {"overrides": told[name], "threshold": found.threshold, "ratio": found.ratio}
        write_text(file, json.dumps(known, indent=1) + "\n")
    entries = {name: known["variants"][name] for name in asked}
    return {name: Match(float(entry["threshold"]), float(entry["ratio"])) for name, entry in entries.items()}


def _found_matches(
    config: Config, names: Sequence[str], on_match: Callable[[int, int], object]
) -> Iterator[tuple[str, Match]]:
    """Yield variants with the thresholds that are found for them; `on_match` hears how far this is, at most."""
    if null := next((name for name in names if config.utility.sensitivity == 0 and VARIANTS[name].null), None):
        raise ConfigError(f"--variant: {null}: needs utility.sensitivity above 0: without it there is no mechanism")
    if not names:
        return
    tried = worlds(config)
    done, of = 0, len(tried) * (1 + STEPS * len(names))

    def step(to: int | None = None) -> None:
        nonlocal done
        done = done + 1 if to is None else to
        on_match(done, of)

    on_match(0, of)
    rates = []
    for world, seeds in tried:
        rates.append(reshare_rate(world, seeds))
        step()
    for place, name in enumerate(names, 1):
        yield name, matched_threshold(config, VARIANTS[name].overrides, rates, on_step=step)
        step(len(tried) * (1 + STEPS * place))


def _write(found: Validation, folder: StudyFolder) -> None:
    """Write the tables as JSON."""
    told = {
        "config": found.config.name,
        "seeds": list(found.seeds),
        "passed": found.passed,
        "targets": [as_json(row) for row in found.rows],
        "variants": {name: [as_json(row) for row in rows] for name, rows in found.variants.items()},
        "matches": {name: {"threshold": m.threshold, "ratio": m.ratio} for name, m in found.matches.items()},
        "rates": {name: rate if isfinite(rate) else None for name, rate in found.rates.items()},
        "notes": list(found.notes),
    }
    write_text(folder.path / VALIDATION, json.dumps(told, indent=1) + "\n")
