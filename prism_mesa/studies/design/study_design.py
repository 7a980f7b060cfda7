"""The design of a study: conditions with their configurations, and runs with their names."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Final

from prism_mesa.errors import ConfigError, PrismError
from prism_mesa.params import flatten, merge_values, nest_keys, validate_params
from prism_mesa.reasoner import Reasoner, make_reasoner
from prism_mesa.runs.config import INPUT_FILES, Config
from prism_mesa.runs.identity import Identity, identify_config
from prism_mesa.runs.yaml_text import read_yaml
from prism_mesa.social.params import InterventionParams
from prism_mesa.streams import digest64
from prism_mesa.studies.design.points import Points, check_keys, find_file, make_points
from prism_mesa.studies.measures.catalogue import chart_states, check_states, find_measure
from prism_mesa.studies.measures.treatment import by_agent, check_interventions
from prism_mesa.studies.params import StudyParams, settings, settings_text
from prism_mesa.studies.statistics.cells import Treatment, level_text
from prism_mesa.studies.statistics.expectation import parse_expectation

ONE_ARM: Final = "all"  # the arm of a study without arms
_FILES: Final = (*INPUT_FILES, ("reasoner", "distilled"), ("reasoner", "ledger_path"))


@dataclass(frozen=True)
class Condition:
    """An arm at a point of the design."""

    number: int
    arm: str
    point: tuple[Any, ...]
    identity: Identity


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study: its name (see `Identity.run_identity`), condition and seed."""

    run: str
    condition: Condition
    seed: int


@dataclass(frozen=True)
class StudyDesign:
    """A checked study: arms x points x seeds.

    Attributes:
        conditions: Arms x points, in the order of the file.
        treatments: Arms that show the effect of an intervention on some agents and on all.
        notes: Remarks, for example on keys without effect.
        skipped: Conditions of optional arms whose LLM is missing: number -> reason.
    """

    params: StudyParams
    name: str
    where: str
    base: Config
    points: Points
    conditions: list[Condition] = field(repr=False)
    maker: "ConfigMaker" = field(repr=False)
    treatments: tuple[Treatment, ...] = ()
    notes: tuple[str, ...] = ()
    skipped: Mapping[int, str] = field(default_factory=dict)

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms, in order."""
        return tuple(self.params.arms) or (ONE_ARM,)

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds of all conditions. If the study is not paired, each condition derives its own seeds from them."""
        seeds = self.params.seeds
        return list(range(1, seeds + 1)) if isinstance(seeds, int) else seeds

    @property
    def n_runs(self) -> int:
        """The number of runs."""
        return len(self.conditions) * len(self.seeds)

    def runs(self) -> Iterator[PlannedRun]:
        """Yield all runs, condition by condition."""
        for condition in self.conditions:
            for seed in self.seeds:
                yield self.planned_run(condition, seed)

    def runs_by_seed(self) -> Iterator[PlannedRun]:
        """Yield all runs seed by seed, so that conditions of an interrupted study have the same seeds."""
        for seed in self.seeds:
            for condition in self.conditions:
                yield self.planned_run(condition, seed)

    def planned_run(self, condition: Condition, seed: int) -> PlannedRun:
        """Return the run of a condition with a seed of the study."""
        if not self.params.paired:
            seed = digest64(condition.arm, repr(condition.point), str(seed)) >> 33
        return PlannedRun(condition.identity.run_identity(seed), condition, seed)

    def factors(self, condition: Condition) -> dict[str, Any]:
        """Return the values of a condition's factors by dotted key."""
        return dict(zip(self.points.factors, condition.point, strict=True))

    def config(self, planned: PlannedRun) -> Config:
        """Return the configuration of a run."""
        config = self.maker.make(planned.condition.arm, self.factors(planned.condition))
        return config.model_copy(update={"seed": planned.seed})


class ConfigMaker:
    """Makes the configurations of conditions from a study's base, `set`, arms and points."""

    def __init__(self, params: StudyParams, where: str) -> None:
        self._params, self._where = params, where
        self._values = merge_values(_read_base(params.base, where), nest_keys(params.set))
        self._kinds: dict[str, str] = {}

    def base(self) -> Config:
        """Return the configuration without any arm or point."""
        where = f"{self._where}: set" if self._params.set else self._where
        return self._resolve(validate_params(Config, self._values, where))

    def make(self, arm: str, point: Mapping[str, Any]) -> Config:
        """Return the configuration of a condition."""
        changes = settings(self._params.arms.get(arm))
        values, where = merge_values(self._values, nest_keys(changes)), self._where
        if changes:
            where = f"{self._where}: arms.{arm}"
            validate_params(Config, values, where)  # check the arm alone, so that errors do not name the point
        where = f"{self._where}: {settings_text(point)}" if point else where
        return self._resolve(validate_params(Config, merge_values(values, nest_keys(point)), where))

    def _resolve(self, config: Config) -> Config:
        """Return a configuration with absolute paths, and with the reasoner that `auto` stands for."""
        config = _make_paths_absolute(config, self._where)
        if config.reasoner.kind != "auto" or config.reasoner.ledger == "replay":
            return config
        reasoner = config.reasoner.model_dump_json()
        if reasoner not in self._kinds:
            self._kinds[reasoner] = reasoner_kind(config)
        update: dict[str, Any] = {"kind": self._kinds[reasoner]}
        if update["kind"] == "rule":
            update |= {"llm_share": 1.0, "distilled": None}
        return config.model_copy(update={"reasoner": config.reasoner.model_copy(update=update)})


def _make_paths_absolute(config: Config, where: str) -> Config:
    """Return a configuration with absolute paths, so that it does not depend on the working directory."""
    for group, key in _FILES:
        path = getattr(getattr(config, group), key)
        if path is not None:
            values = getattr(config, group).model_copy(update={key: str(find_file(path, where).absolute())})
            config = config.model_copy(update={group: values})
    return config


def reasoner_kind(config: Config) -> str:
    """Return the kind of reasoner that a configuration gives; raise MissingLLMError if its LLM is missing."""
    reasoner = make_reasoner(config.reasoner)
    try:
        return str(reasoner.kind)
    finally:
        if isinstance(reasoner, Reasoner):
            reasoner.close()


def _read_base(base: str | Mapping[str, Any], where: str) -> dict[str, Any]:
    key = f"{where}: base"
    if isinstance(base, Mapping):
        values = nest_keys(base)
    else:
        file = find_file(base, where)
        try:
            values = nest_keys(read_yaml(file, hint=""))
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None
        key = f"{key}: {file}"
    if "economy" in values:
        raise ConfigError(f"{key} is a configuration of nations: studies run platforms")
    validate_params(Config, values, key)
    return values


def _find_treatments(measures: Iterable[str], config_by_arm: Mapping[str, Config]) -> tuple[Treatment, ...]:
    """Return the treatments of measures by agent for which some arms treat a share, one treats all, and one nobody.

    Interventions with `agents` are left out, because nobody is marked as eligible in the arm that treats nobody.
    """
    treatments = []
    for measure in measures:
        count, _, name = measure.partition("@")
        parts = {arm: _split(config, name) for arm, config in config_by_arm.items() if count in by_agent(count)}
        for whole, (share, act, rest) in parts.items():
            if act is None or share < 1 or act.agents is not None:
                continue
            shares = {arm: part[0] for arm, part in parts.items() if part[1] in (None, act) and part[2] == rest}
            some, none = ([arm for arm in shares if 0 < shares[arm] < 1], [arm for arm in shares if not shares[arm]])
            if some and none:
                rounds = f"{act.at}" if act.until is None else f"{act.at}-{act.until - 1}"
                treatments.append(Treatment(measure, f"{count}@{rounds}", tuple(some), whole, none[0]))
    return tuple(treatments)


def _split(config: Config, name: str) -> tuple[float, InterventionParams | None, Config]:
    """Return the share that an intervention treats, the intervention without it, and the rest of a configuration."""
    act = next((act for act in config.interventions if act.name == name), None)
    rest = config.model_copy(update={"interventions": tuple(other for other in config.interventions if other != act)})
    if act is None:
        return 0.0, None, rest
    return 1.0 if act.share is None else act.share, act.model_copy(update={"share": None, "assign": None}), rest


def design_study(params: StudyParams, name: str, where: str) -> StudyDesign:
    """Return the design of a study; raise BadInputError for faults that can be found before any run."""
    maker = ConfigMaker(params, where)
    for group, values in params.groups.items():
        check_keys(dict(flatten(values)), f"{where}: {group}")
    base, points = maker.base(), make_points(params, where)
    try:
        for measure in params.measures:
            find_measure(measure)
    except PrismError as error:
        raise ConfigError(f"{where}: {error}") from None
    conditions: list[Condition] = []
    config_by_arm: dict[str, Config] = {}
    charts: set[str | None] = set()
    for arm in tuple(params.arms) or (ONE_ARM,):
        for point in points.values:
            config = maker.make(arm, dict(zip(points.factors, point, strict=True)))
            conditions.append(Condition(len(conditions), arm, point, identify_config(config)))
            config_by_arm.setdefault(arm, config)
            charts.add(config.statechart.chart)
    is_fixed = "interventions" not in points.factors
    treatments = _find_treatments(params.measures, config_by_arm) if params.paired and is_fixed else ()
    if added := [level for level in dict.fromkeys(t.level for t in treatments) if level not in params.measures]:
        params = params.model_copy(update={"measures": [*params.measures, *added]})
    design = StudyDesign(params, params.name or name, where, base, points, conditions, maker, treatments)
    levels = factor_levels(points)
    try:
        for text in params.expect:
            parse_expectation(text, measures=params.measures, arms=design.arms, factors=levels)
        if is_fixed:
            check_interventions(params.measures, config_by_arm.values())
        check_states(params.measures, chart_states(charts))
    except PrismError as error:
        raise ConfigError(f"{where}: {error}") from None
    notes = list(points.notes)
    if added:
        notes.append(f"measures: {', '.join(added)}: added, for the effect on the whole platform")
    if base.seed != Config.model_fields["seed"].default:
        notes.append(f"base: seed={base.seed}: no effect: use the study's key 'seeds'")
    return replace(design, notes=(*notes, *_note_equal_conditions(design)))


def factor_levels(points: Points) -> dict[str, list[Any]]:
    """Return the levels of each factor, in order of appearance."""
    levels: dict[str, dict[str, Any]] = {factor: {} for factor in points.factors}
    for point in points.values:
        for factor, value in zip(points.factors, point, strict=True):
            levels[factor].setdefault(repr(value), value)
    return {factor: list(values.values()) for factor, values in levels.items()}


def _note_equal_conditions(design: StudyDesign) -> list[str]:
    first_conditions: dict[Identity, Condition] = {}
    equal_texts = []
    for condition in design.conditions:
        first = first_conditions.setdefault(condition.identity, condition)
        if first is not condition:
            equal_texts.append(f"{condition_text(first, design)} = {condition_text(condition, design)}")
    if not equal_texts:
        return []
    more = f", and {len(equal_texts) - 3} more" if len(equal_texts) > 3 else ""
    return [f"equivalent conditions share their runs: {'; '.join(equal_texts[:3])}{more}"]


def condition_text(condition: Condition, design: StudyDesign) -> str:
    """Describe a condition by its arm and its point."""
    parts = [condition.arm if design.params.arms else "", settings_text(design.factors(condition))]
    return ", ".join(filter(None, parts)) or "all runs"


def run_text(planned: PlannedRun, design: StudyDesign) -> str:
    """Describe a run by its condition and its seed."""
    return f"{condition_text(planned.condition, design)}, seed {planned.seed}"


def override_text(planned: PlannedRun, design: StudyDesign) -> str:
    """Return the overrides of the base, ``key=value ...``, that repeat a run; quoted for a shell."""
    arm = settings(design.params.arms.get(planned.condition.arm))
    values = {**dict(flatten(arm)), **design.factors(planned.condition), "seed": planned.seed}
    files = [(group, key) for group, key in _FILES if f"{group}.{key}" in values]
    config = design.config(planned) if files else None
    values |= {f"{group}.{key}": getattr(getattr(config, group), key) for group, key in files}
    return " ".join(shlex.quote(settings_text({key: value})) for key, value in values.items())


MAX_WORLDS: Final = 24

type Worlds = Mapping[tuple[str, ...], Config]
"""Condition -> configuration. A condition is an arm's name, then ``key=level`` for each factor."""


def condition_configs(
    base: Config, values: Mapping[str, Any], levels: Mapping[str, Sequence[Any]] | None = None
) -> Worlds:
    """Return the configurations of a study's conditions, at most `MAX_WORLDS`.

    If there are more, some factors keep their value in `base`, first of all numeric factors. `levels` defaults to the
    levels in the study file's `values`, or to none for a sampled design.
    """
    if levels is None:
        levels = {} if values.get("design") else values.get("vary") or {}
    terms = [{arm: settings(changes) for arm, changes in (values.get("arms") or {}).items()} or {"": {}}]
    n = len(terms[0])
    for key, level_values in sorted(levels.items(), key=lambda item: all(isinstance(v, int | float) for v in item[1])):
        if n * len(level_values) <= MAX_WORLDS:
            terms.append({f"{key}={level_text(value)}": {key: value} for value in level_values})
            n *= len(level_values)
    base_values = base.model_dump(mode="json", exclude_unset=True)
    worlds = {}
    for combination in product(*(term.items() for term in terms)):
        changes = {key: value for _, settings in combination for key, value in flatten(settings)}
        name = tuple(label for label, _ in combination if label)
        changed_values = merge_values(base_values, nest_keys(changes))
        worlds[name] = validate_params(Config, changed_values, ", ".join(name) or "study")
    return worlds
