"""A configuration held against real data, as users call it."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from prism_mesa.api.studies import engine_of
from prism_mesa.errors import ConfigError
from prism_mesa.params import shown
from prism_mesa.runs.config import Config, as_given
from prism_mesa.runs.yaml_text import read_yaml
from prism_mesa.studies.driver import Progress
from prism_mesa.studies.validation import validation
from prism_mesa.studies.validation.real import load_real_values
from prism_mesa.studies.validation.validation import Validation
from prism_mesa.studies.validation.variants import chosen_variants


def validate(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    data: str | Path | None = None,
    seeds: int = 3,
    variants: Sequence[str] = (),
    fitted: str | Path | None = None,
    workers: int | None = None,
    out: str | Path = "results",
    name: str | None = None,
    report: bool = True,
    on_run: Callable[[Progress], object] = lambda progress: None,
    on_match: Callable[[int, int], object] = lambda done, of: None,
) -> Validation:
    """Run a configuration with several seeds, hold it against what is known of real platforms, and write a report.

    Args:
        config: A `Config`, its values, or the path of a YAML file.
        data: Folder of the real data, from which real values are computed; None: those that PRISM carries.
        seeds: How many, counted from the configuration's own.
        variants: Names of null models and ablations that are run beside it; `nulls` or `all` for several.
        fitted: Calibration file, whose `fit` names the measures that parameters were fitted to; None: as it is known of
            PRISM's own configuration.
        workers: Runs at the same time; None: one for each core that the threads of a run leave.
        out: Parent folder of what is made; the same call continues what is there.
        name: What the folder's name begins with; None: the file's, or the configuration's own.
        report: Whether report.md and figures are written.
        on_run: Called with the progress at first and after each run.
        on_match: Called, while variants are matched before that, with the thresholds tried and how many it can be.

    Returns:
        The tables, and whether all required targets that apply are inside (`passed`).

    Raises:
        BadInputError: If a key, a value, a variant or the folder of data is wrong.
        RunError: If a run failed; what was done is kept.
    """
    if isinstance(seeds, bool) or not isinstance(seeds, int) or not 1 <= seeds <= 10_000:
        raise ConfigError(f"seeds: give a whole number from 1 to 10,000, not {shown(seeds)}")
    chosen = chosen_variants(variants)
    known = None if fitted is None else _measures_fitted(Path(fitted))
    made = as_given(Config, config)
    stem = Path(config).stem if isinstance(config, str | os.PathLike) else made.name
    run_all = partial(validation.validate, engine=engine_of("local", workers), on_run=on_run, on_match=on_match)
    found = run_all(made, name or stem, load_real_values(data), seeds=seeds, variants=chosen, fitted=known, out=out)
    if report:
        from prism_mesa.view.validation.report import write_report

        write_report(found)
    return found


def _measures_fitted(file: Path) -> set[str]:
    """Return the measures that a calibration file names under `fit`.

    Raises:
        ConfigError: If it has no such key.
    """
    fit = read_yaml(file, what="calibration file", hint="").get("fit")
    if not isinstance(fit, Mapping) or not fit:
        raise ConfigError(f"{file}: fit: names no measures: it is to be a calibration file (prism calibrate)")
    return {str(measure) for measure in fit}
