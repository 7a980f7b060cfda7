"""Build the models of a study's conditions before anything runs, to find errors and keys without effect."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Final

from prism_mesa.errors import ConfigError, MissingLLMError, PrismError, PrismWarning
from prism_mesa.runs.config import INPUT_FILES
from prism_mesa.social.model import SocialModel
from prism_mesa.studies.design.study_design import Condition, StudyDesign, condition_text, reasoner_kind

_MAX_MODELS: Final = 48
_MAX_AGENTS: Final = 20_000
_MAX_BYTES: Final = 5_000_000


def check_models(design: StudyDesign) -> tuple[str, ...]:
    """Build the models of small conditions, and return their notes; raise ConfigError if a model cannot be built."""
    notes: dict[str, list[str]] = {}
    conditions = [condition for condition in conditions_to_check(design) if condition.number not in design.skipped]
    for condition in conditions:
        config = design.config(design.planned_run(condition, design.seeds[0]))
        files = [getattr(getattr(config, group), key) for group, key in INPUT_FILES]
        size = sum(Path(file).stat().st_size for file in files if file and Path(file).is_file())
        if config.agents.n > _MAX_AGENTS or size > _MAX_BYTES:
            continue
        name = condition_text(condition, design)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrismWarning)
                model = SocialModel(config)
        except PrismError as error:
            raise ConfigError(f"{design.where}: {name}: {error}") from None
        model.close()
        for note in model.notes:
            notes.setdefault(note, []).append(name)
    n = len(conditions)
    return tuple(note if len(names) == n else f"{'; '.join(names[:3])}: {note}" for note, names in notes.items())


def find_skipped(design: StudyDesign) -> StudyDesign:
    """Return the study with its skipped conditions: the conditions of optional arms whose LLM is missing."""
    faults: dict[str, str] = {}
    skipped, arms_without_llm = dict[int, str](), set(design.params.optional)
    for condition in design.conditions:
        if condition.arm not in design.params.optional:
            continue
        config = design.config(design.planned_run(condition, design.seeds[0]))
        reasoner = config.reasoner.model_dump_json()
        if reasoner not in faults:
            try:
                faults[reasoner] = reasoner_kind(config) and ""
            except MissingLLMError as error:
                faults[reasoner] = str(error).replace(", or set reasoner.kind=rule", "")
        if faults[reasoner]:
            skipped[condition.number] = faults[reasoner]
        if config.reasoner.kind not in ("rule", "distilled"):
            arms_without_llm.discard(condition.arm)
    notes = [f"arms.{arm}.optional: no effect: this arm asks no LLM" for arm in sorted(arms_without_llm)]
    return replace(design, skipped=skipped, notes=(*design.notes, *notes))


def conditions_to_check(design: StudyDesign) -> list[Condition]:
    """Return conditions that cover all arms and levels, at most `_MAX_MODELS` of them."""
    covered_levels: set[tuple[int, str]] = set()
    conditions: list[Condition] = []
    for condition in design.conditions:
        levels = {(index, repr(value)) for index, value in enumerate((condition.arm, *condition.point))}
        if not levels <= covered_levels and len(conditions) < _MAX_MODELS:
            covered_levels |= levels
            conditions.append(condition)
    return conditions
