"""A study as it is to be run: every condition with its configuration, every run with its name."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Final

from prism_mesa.errors import ConfigError, PrismError
from prism_mesa.params import merged, nested, validated
from prism_mesa.reasoner import Reasoner, make_reasoner
from prism_mesa.runs.config import INPUT_FILES, Config
from prism_mesa.runs.identity import Identity, identity_of
from prism_mesa.runs.yaml_text import read_yaml
from prism_mesa.streams import digest64
from prism_mesa.studies.design.points import Points, check_keys, find_file, make_points
from prism_mesa.studies.measures.catalogue import find_measure
from prism_mesa.studies.params import StudyParams, flat, settings, shortest
from prism_mesa.studies.statistics.cells import level_text
from prism_mesa.studies.statistics.expectation import parse_expectation

ONE_ARM: Final = "all"  # what the arm of a study is called that names none
_FILES: Final = (*INPUT_FILES, ("reasoner", "distilled"), ("reasoner", "ledger_path"))


@dataclass(frozen=True)
class Condition:
    """An arm at a point: what runs differ in besides their seeds."""

    number: int
    arm: str
    point: tuple[Any, ...]
    identity: Identity


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study: its name (see `Identity.run_of`), its condition, its seed."""

    run: str
    condition: Condition
    seed: int


@dataclass(frozen=True)
class StudyDesign:
    """A study, checked: arms x points x seeds.

    Attributes:
        points: Of the design; one without values if nothing varies.
        conditions: Arms x points, in the order of the file.
        notes: Changes made when the study was read, and keys without effect.
        skipped: Conditions of optional arms whose LLM is missing: number -> reason.
    """

    params: StudyParams
    name: str
    where: str
    base: Config
    points: Points
    conditions: list[Condition] = field(repr=False)
    maker: "ConfigMaker" = field(repr=False)
    notes: tuple[str, ...] = ()
    skipped: Mapping[int, str] = field(default_factory=dict)

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms, in order."""
        return tuple(self.params.arms) or (ONE_ARM,)

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds of each condition; of a study that is not paired they are turned into others, by condition."""
        given = self.params.seeds
        return list(range(1, given + 1)) if isinstance(given, int) else given

    @property
    def n_runs(self) -> int:
        """How many runs there are."""
        return len(self.conditions) * len(self.seeds)

    def runs(self) -> Iterator[PlannedRun]:
        """Yield all runs, condition by condition."""
        for condition in self.conditions:
            for seed in self.seeds:
                yield self.run_of(condition, seed)

    def runs_by_seed(self) -> Iterator[PlannedRun]:
        """Yield all runs, seed by seed: what is broken off then has the same seeds in all conditions."""
        for seed in self.seeds:
            for condition in self.conditions:
                yield self.run_of(condition, seed)

    def run_of(self, condition: Condition, seed: int) -> PlannedRun:
        """Return the run of a condition with a seed of the study."""
        if not self.params.paired:
            seed = digest64(condition.arm, repr(condition.point), str(seed)) >> 33
        return PlannedRun(condition.identity.run_of(seed), condition, seed)

    def factors_of(self, condition: Condition) -> dict[str, Any]:
        """Return the values of the factors of a condition by dotted key."""
        return dict(zip(self.points.factors, condition.point, strict=True))

    def config_of(self, planned: PlannedRun) -> Config:
        """Return the configuration of a run."""
        condition = planned.condition
        made = self.maker.config_of(condition.arm, self.factors_of(condition))
        return made.model_copy(update={"seed": planned.seed})


class ConfigMaker:
    """Makes the configurations of conditions from a study's base, what all runs have, arms and points."""

    def __init__(self, params: StudyParams, where: str) -> None:
        self._params, self._where = params, where
        self._values = merged(_base_values(params.base, where), nested(params.set))
        self._decides: dict[str, str] = {}

    def base(self) -> Config:
        """Return the configuration of a run in no arm and at no point."""
        return self._resolved(
            validated(Config, self._values, f"{self._where}: set" if self._params.set else self._where)
        )

    def config_of(self, arm: str, point: Mapping[str, Any]) -> Config:
        """Return the configuration of a condition."""
        own = settings(self._params.arms.get(arm))
        values = merged(self._values, nested(own))
        if own:
            validated(Config, values, f"{self._where}: arms.{arm}")  # so that its faults are not put down to the point
        where = f"{self._where}: {shortest(point)}" if point else f"{self._where}: arms.{arm}" if own else self._where
        return self._resolved(validated(Config, merged(values, nested(point)), where))

    def _resolved(self, config: Config) -> Config:
        """Return a configuration with the whole paths of its files, and who decides where that was left open."""
        config = _with_whole_paths(config, self._where)
        if config.reasoner.kind != "auto" or config.reasoner.ledger == "replay":
            return config
        asked = config.reasoner.model_dump_json()
        if asked not in self._decides:
            self._decides[asked] = who_decides(config)
        update: dict[str, Any] = {"kind": self._decides[asked]}
        if update["kind"] == "rule":
            update |= {"llm_share": 1.0, "distilled": None}
        return config.model_copy(update={"reasoner": config.reasoner.model_copy(update=update)})


def _with_whole_paths(config: Config, where: str) -> Config:
    """Return a configuration that names the same files in whatever folder a run is made."""
    for group, key in _FILES:
        path = getattr(getattr(config, group), key)
        if path is not None:
            own = getattr(config, group).model_copy(update={key: str(find_file(path, where).absolute())})
            config = config.model_copy(update={group: own})
    return config


def who_decides(config: Config) -> str:
    """Return the kind of reasoner that decides; raise MissingLLMError if it needs an LLM that is missing."""
    reasoner = make_reasoner(config.reasoner)
    try:
        return str(reasoner.kind)
    finally:
        if isinstance(reasoner, Reasoner):
            reasoner.close()


def _base_values(base: str | Mapping[str, Any], where: str) -> dict[str, Any]:
    key = f"{where}: base"
    if isinstance(base, Mapping):
        values = nested(base)
    else:
        file = find_file(base, where)
        try:
            values = nested(read_yaml(file, hint=""))
        except ConfigError as error:
            raise ConfigError(f"{key}: {error}") from None
        key = f"{key}: {file}"
    if "economy" in values:
        raise ConfigError(f"{key}: is the configuration of nations: a study is of runs of the platform")
    validated(Config, values, key)
    return values


def design_study(params: StudyParams, name: str, where: str) -> StudyDesign:
    """Return a study as it is to be run, checked as far as that is possible before anything runs.

    Raises:
        BadInputError: One line: where, what, what is allowed.
    """
    maker = ConfigMaker(params, where)
    for group, values in params.groups.items():
        check_keys(dict(flat(values)), f"{where}: {group}")
    base, points = maker.base(), make_points(params, where)
    for measure in params.measures:
        _named(lambda measure=measure: find_measure(measure), where)
    conditions: list[Condition] = []
    for arm in tuple(params.arms) or (ONE_ARM,):
        for point in points.values:
            config = maker.config_of(arm, dict(zip(points.factors, point, strict=True)))
            conditions.append(Condition(len(conditions), arm, point, identity_of(config)))
    design = StudyDesign(params, params.name or name, where, base, points, conditions, maker)
    levels = factor_levels(points)
    for text in params.expect:
        _named(
            lambda text=text: parse_expectation(text, measures=params.measures, arms=design.arms, factors=levels), where
        )
    notes = list(points.notes)
    if base.seed != Config.model_fields["seed"].default:
        notes.append(f"base: seed={base.seed}: no effect: the study's own key 'seeds' says which seeds there are")
    return replace(design, notes=(*notes, *_same_runs(design)))


def factor_levels(points: Points) -> dict[str, list[Any]]:
    """Return the values that each factor has, in the order in which they come."""
    levels: dict[str, dict[str, Any]] = {factor: {} for factor in points.factors}
    for point in points.values:
        for factor, value in zip(points.factors, point, strict=True):
            levels[factor].setdefault(repr(value), value)
    return {factor: list(values.values()) for factor, values in levels.items()}


def _named(check: Any, where: str) -> None:
    """Have the errors of a check begin with the study file."""
    try:
        check()
    except PrismError as error:
        raise ConfigError(f"{where}: {error}") from None


def _same_runs(design: StudyDesign) -> list[str]:
    """Return which conditions are the same: they differ in nothing that decides a result, and share their runs."""
    known: dict[Identity, Condition] = {}
    same = []
    for condition in design.conditions:
        first = known.setdefault(condition.identity, condition)
        if first is not condition:
            same.append(f"{condition_text(first, design)} = {condition_text(condition, design)}")
    if not same:
        return []
    more = f", and {len(same) - _SHOWN} more" if len(same) > _SHOWN else ""
    return [
        f"conditions that differ in nothing that decides a result share their runs: {'; '.join(same[:_SHOWN])}{more}"
    ]


_SHOWN: Final = 3


def condition_text(condition: Condition, design: StudyDesign) -> str:
    """Return a condition in words: its arm, and its point."""
    named = [condition.arm] if design.params.arms else []
    point = design.factors_of(condition)
    return ", ".join([*named, *([shortest(point)] if point else [])]) or "all runs"


def run_text(planned: PlannedRun, design: StudyDesign) -> str:
    """Describe a run in words: its condition and its seed."""
    return f"{condition_text(planned.condition, design)}, seed {planned.seed}"


def override_text(planned: PlannedRun, design: StudyDesign) -> str:
    """Return the overrides of the base that make a run again, ``key=value ...``, for a shell."""
    arm = settings(design.params.arms.get(planned.condition.arm))
    own = {**dict(flat(arm)), **design.factors_of(planned.condition), "seed": planned.seed}
    files = [(group, key) for group, key in _FILES if f"{group}.{key}" in own]
    config = design.config_of(planned) if files else None
    own |= {f"{group}.{key}": getattr(getattr(config, group), key) for group, key in files}
    return " ".join(shlex.quote(shortest({key: value})) for key, value in own.items())


MOST_WORLDS: Final = 24

type Worlds = Mapping[tuple[str, ...], Config]
"""Configurations by what leads to them: an arm's name, then ``key=level`` for each factor."""


def condition_configs(
    base: Config, values: Mapping[str, Any], levels: Mapping[str, Sequence[Any]] | None = None
) -> Worlds:
    """Return the configuration of each condition of a study.

    If there were more than `MOST_WORLDS`, factors keep the value of `base`, those with numbers first.

    Args:
        base: What all conditions start from.
        values: The values of the study file.
        levels: The levels of each factor; by default those in `values`, none for a sampled design.
    """
    if levels is None:
        levels = {} if values.get("design") else values.get("vary") or {}
    terms = [{arm: settings(own) for arm, own in (values.get("arms") or {}).items()} or {"": {}}]
    n = len(terms[0])
    for key, several in sorted(levels.items(), key=lambda item: all(isinstance(v, int | float) for v in item[1])):
        if n * len(several) <= MOST_WORLDS:
            terms.append({f"{key}={level_text(value)}": {key: value} for value in several})
            n *= len(several)
    start = base.model_dump(mode="json", exclude_unset=True)
    worlds = {}
    for path in product(*(term.items() for term in terms)):
        changes = {key: value for _, settings in path for key, value in flat(settings)}
        name = tuple(step for step, _ in path if step)
        worlds[name] = validated(Config, merged(start, nested(changes)), ", ".join(name) or "study")
    return worlds
