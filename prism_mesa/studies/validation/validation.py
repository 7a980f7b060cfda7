"""Validate a configuration: run it with several seeds, beside its variants, and compare it with real values."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
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
from prism_mesa.studies.validation.targets import TARGETS, targets_fitted
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
_RECORDED: Final = 6_000  # agents whose transitions are recorded, and the basis of the share of posts with views
BESIDE: Final = (
    *("agents", "followees_mean", "post_impressions", "reproduction_0", "reproduction_1", "reproduction_2"),
    *("reproduction_later", "large_breadth", "shape_depth", "shape_breadth", "shape_virality"),
    "reshares_per_impression",
)
"""Measures that help to read the table: shapes, and what they depend on."""
MEASURES: Final = tuple(dict.fromkeys([*(target.measure for target in TARGETS), *BESIDE]))


@dataclass(frozen=True, repr=False)
class Validation:
    """The results of a validation.

    Attributes:
        path: Its folder.
        config: The configuration.
        seeds: The seeds of all conditions.
        rows: The table of the configuration itself.
        variants: The tables of its variants, by name.
        matches: The thresholds of the variants that were matched, by name.
        curves: Distributions of all runs (`measures.curves`), with `arm` and `seed`.
        runs: A row for each run, with its measures.
        real: Real values and curves.
        notes: Notes for the reader.
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
        """Reshares per impression of each variant in these runs, as a multiple of the full model's."""
        means = self.runs.groupby("arm")["reshares_per_impression"].mean()
        full = float(means[FULL])
        return {name: float(means[name]) / full if full else nan for name in self.variants}

    @property
    def passed(self) -> bool:
        """Whether all required targets that apply are inside; False if none applies."""
        return self.judged > 0 and not self.outside

    @one_line
    def __repr__(self) -> str:
        inside = self.judged - len(self.outside)
        return f"<Validation {inside} of {self.judged} targets inside, {len(self.seeds)} seeds, {self.path}>"


def prepared(config: Config) -> Config:
    """Return a configuration for validation: views are counted, and of many agents samples are recorded.

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
    """Run the missing runs, write ``validation.json``, and return the results.

    The arguments are those of `api.validation.validate`, checked.

    Raises:
        ConfigError: If a variant is no configuration.
        DataError: If the folder cannot be used.
        RunError: If a run failed; other results are kept.
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
    failed = runs[runs["status"] != "done"]
    if len(failed):
        reason = failed["reason"].iloc[0]
        raise RunError(f"{kept.path}: {len(failed)} of {len(runs)} runs failed; the first one: {reason}")
    targets, full = targets_fitted(fitted), runs[runs["arm"] == FULL]
    agents, followees = float(full["agents"].mean()), float(full["followees_mean"].mean())
    tables = {
        name: target_rows(
            runs[runs["arm"] == name], real, lambda target: why_not(target, config, agents, followees), targets
        )
        for name in (FULL, *variants)
    }
    rows = tables.pop(FULL)
    known = tuple(f"{row.target.measure}: not a number" for row in rows if row.why_not)  # the table says so
    notes = tuple(note for note in result.notes if not (known and note.startswith(known)))
    curves = pd.read_parquet(kept.table(CURVES))
    validation = Validation(kept.path, config, tuple(numbers), rows, tables, matches, curves, runs, real, notes)
    _write(validation, kept)
    return validation


def _design(
    config: Config, name: str, seeds: Sequence[int], variants: Sequence[str], matches: Mapping[str, Match]
) -> StudyDesign:
    arms: dict[str, dict[str, Any]] = {FULL: {}}
    for variant in variants:
        moved = {KEY: matches[variant].threshold} if variant in matches else {}
        arms[variant] = {**VARIANTS[variant].overrides, **moved}
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
    """Return the thresholds of variants that are matched; those of earlier calls are read from the folder."""
    names = [name for name in variants if VARIANTS[name].matched]
    if not names:
        return {}
    if null := next((name for name in names if config.utility.sensitivity == 0 and VARIANTS[name].null), None):
        raise ConfigError(f"--variant: {null}: needs utility.sensitivity above 0: without it there is no mechanism")
    file = folder / _MATCHED
    known = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    if known.get("code") != code_version():
        known = {"code": code_version(), "variants": {}}
    overrides = {name: json.dumps(dict(VARIANTS[name].overrides), sort_keys=True) for name in names}
    missing = [name for name in names if known["variants"].get(name, {}).get("overrides") != overrides[name]]
    for name, match in _search_matches(config, missing, on_match):
        known["variants"][name] = {"overrides": overrides[name], **asdict(match)}
        write_text(file, json.dumps(known, indent=1) + "\n")
    entries = {name: known["variants"][name] for name in names}
    return {name: Match(float(entry["threshold"]), float(entry["ratio"])) for name, entry in entries.items()}


def _search_matches(
    config: Config, names: Sequence[str], on_match: Callable[[int, int], object]
) -> Iterator[tuple[str, Match]]:
    """Yield variants with their thresholds; `on_match` gets the steps done, and the most there can be."""
    if not names:
        return
    tried = worlds(config)
    steps, most = 0, len(tried) * (1 + STEPS * len(names))

    def step() -> None:
        nonlocal steps
        steps += 1
        on_match(steps, most)

    on_match(0, most)
    rates = []
    for world, seeds in tried:
        rates.append(reshare_rate(world, seeds))
        step()
    for place, name in enumerate(names, 1):
        yield name, matched_threshold(config, VARIANTS[name].overrides, rates, on_step=step)
        steps = len(tried) * (1 + STEPS * place)
        on_match(steps, most)


def _write(validation: Validation, folder: StudyFolder) -> None:
    """Write the tables as JSON."""
    content = {
        "config": validation.config.name,
        "seeds": list(validation.seeds),
        "passed": validation.passed,
        "targets": [as_json(row) for row in validation.rows],
        "variants": {name: [as_json(row) for row in rows] for name, rows in validation.variants.items()},
        "matches": {name: asdict(match) for name, match in validation.matches.items()},
        "rates": {name: rate if isfinite(rate) else None for name, rate in validation.rates.items()},
        "notes": list(validation.notes),
    }
    write_text(folder.path / VALIDATION, json.dumps(content, indent=1) + "\n")
