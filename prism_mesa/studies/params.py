"""The keys of a study file."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self

import yaml
from pydantic import Field, field_validator, model_validator

from prism_mesa.params import Params, flatten, validate_params
from prism_mesa.runs.yaml_text import parse_yaml, read_yaml
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.studies.measures.curves import CURVES

MEASURES: Final = ("gini_impressions", "cascade_mean", "cascade_max", "engagement_per_impression", "likes", "reshares")
"""The default measures of a study."""

NAME: Final = r"^\w[\w.-]{0,59}$"  # valid names of studies

type SampledDesign = Literal["sobol", "lhs", "morris"]
SAMPLED: Final[tuple[SampledDesign, ...]] = ("sobol", "lhs", "morris")


class RunLimits(Params):
    """Limits of a run; null means no limit."""

    seconds: float | None = Field(None, gt=0, description="seconds of real time after which a run is ended")
    memory_gb: float | None = Field(None, gt=0, description="memory in GB above which a run is ended")


class StudyLimits(RunLimits):
    """Limits of a study; null means no limit."""

    calls: int | None = Field(None, ge=0, description="LLM calls in all runs after which no run starts")


class StudyParams(Params):
    """A question, the conditions to compare, and the measures."""

    question: str = Field(min_length=1, max_length=400, description="the question")
    name: str | None = Field(None, pattern=NAME, description="name of the study's folder; null: name of the study file")
    base: str | dict[str, Any] = Field(
        default_factory=dict,
        description="the configuration that all runs start from: a YAML file in the working directory or next to the "
        "study file, or its values",
    )
    set: dict[str, Any] = Field(default_factory=dict, description="values that override the base, by dotted key")
    arms: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="conditions to compare: the name of each arm and the values that it changes; `optional: true` "
        "skips an arm if its LLM is missing",
    )
    vary: dict[str, list[Any]] = Field(
        default_factory=dict,
        description="values by dotted key, in all combinations; for a sampled design the lowest and highest value",
    )
    design: str | dict[str, Any] | None = Field(
        None, description="how points are chosen: {sobol: 64}, {lhs: 200}, {morris: 20}, or a CSV file of points"
    )
    seeds: int | list[int] = Field(20, description="number of seeds (1, 2, ...), or a list of seeds")
    paired: bool = Field(True, description="whether all conditions share seeds, and thus random numbers")
    measures: list[str] = Field(
        default_factory=lambda: list(MEASURES),
        min_length=1,
        description="names of measures, or module:function for your own",
    )
    expect: list[str] = Field(
        default_factory=list, description="expectations such as 'measure: ranked > chronological'"
    )
    limits: StudyLimits = Field(default_factory=StudyLimits)
    keep: Literal["tables", "measures"] = Field(
        "tables", description="tables: keep each run's folder; measures: keep only its row in the table of runs"
    )
    collect: list[str] = Field(
        default_factory=list,
        description="tables whose rows are collected from all runs; `curves` holds sizes of cascades, hours, "
        "delays, ... for figures",
    )
    cache: bool = Field(
        True, description="whether all runs share the LLM's answers, so that no question is asked twice"
    )

    @field_validator("arms", mode="before")
    @classmethod
    def _allow_empty_arms(cls, arms: object) -> object:
        if not isinstance(arms, Mapping):
            raise ValueError("give the name of each arm and its values: {ranked: {feed.mode: x_algo}}")
        return {name: {} if values is None else values for name, values in arms.items()}

    @field_validator("arms", mode="after")
    @classmethod
    def _check_arms(cls, arms: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for name in arms:
            if not _ARM.fullmatch(name):
                raise ValueError(f"{name!r}: a name has only letters, digits, '_', '-', '.' and spaces inside")
            if not isinstance(arms[name].get("optional", False), bool):
                raise ValueError(f"{name}: optional: give true or false")
        return arms

    @field_validator("seeds", mode="before")
    @classmethod
    def _check_seeds(cls, seeds: object) -> object:
        seed_list = seeds if isinstance(seeds, list) else [seeds]
        if not seed_list or any(isinstance(seed, bool) or not isinstance(seed, int) for seed in seed_list):
            raise ValueError("give a whole number, or a list of seeds")
        if isinstance(seeds, list) and (len(set(seeds)) < len(seeds) or any(not 0 <= seed < 2**63 for seed in seeds)):
            raise ValueError("give different seeds of at least 0")
        if isinstance(seeds, int) and not 1 <= seeds <= _MAX_SEEDS:
            raise ValueError(f"give from 1 to {_MAX_SEEDS:,} seeds")
        return seeds

    @field_validator("expect", mode="before")
    @classmethod
    def _allow_expectations_without_quotes(cls, lines: object) -> object:
        """Accept ``- likes: a > b`` without quotes, which YAML reads as a key and a value."""
        if not isinstance(lines, list):
            return lines
        return [
            ": ".join(map(str, *line.items())) if isinstance(line, dict) and len(line) == 1 else line for line in lines
        ]

    @field_validator("measures", "expect", "collect", mode="after")
    @classmethod
    def _check_repeats(cls, names: list[str]) -> list[str]:
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} occurs twice")
        return names

    @field_validator("collect", mode="after")
    @classmethod
    def _check_tables(cls, tables: list[str]) -> list[str]:
        known = (*SOCIAL_TABLES, CURVES)
        for table in tables:
            if table not in known:
                raise ValueError(f"{table!r} is not a table ({', '.join(known)})")
        return tables

    @field_validator("vary", mode="after")
    @classmethod
    def _check_levels(cls, vary: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for key, levels in vary.items():
            if not levels or len({str(level) for level in levels}) < len(levels):
                raise ValueError(f"{key}: give at least one value, each once")
        return vary

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        for group, values in ({"vary": self.vary} | self.groups).items():
            keys = [key for key, _ in flatten(values)]
            for key in keys:
                if keys.count(key) > 1:
                    raise ValueError(f"{group}: {key}: occurs twice")
                if key == "seed":
                    raise ValueError(f"{group}: seed: use the study's key 'seeds'")
                if key in self.vary and group != "vary":
                    raise ValueError(f"{group}: {key}: is in 'vary', too; leave it out of one of them")
        return self

    @property
    def groups(self) -> dict[str, dict[str, Any]]:
        """The settings in `set` and in each arm, by their key in the study file."""
        return {"set": self.set, **{f"arms.{arm}": settings(values) for arm, values in self.arms.items()}}

    @property
    def optional(self) -> frozenset[str]:
        """The arms to skip if their LLM is missing."""
        return frozenset(arm for arm, values in self.arms.items() if values.get("optional"))


_MAX_SEEDS: Final = 1_000_000
_ARM: Final = re.compile(r"[\w.-](?:[\w. -]{0,58}[\w.-])?")


def settings(arm: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings of an arm: everything except `optional`."""
    return {key: value for key, value in (arm or {}).items() if key != "optional"}


def settings_text(values: Mapping[str, Any]) -> str:
    """Return settings as one line of text.

    >>> settings_text({"feed.mode": "x_algo", "agents.n": 500})
    'feed.mode=x_algo, agents.n=500'
    """
    return ", ".join(f"{key}={json.dumps(v) if not isinstance(v, str) else v}" for key, v in values.items())


def parse_value(text: str) -> Any:
    """Return the YAML value of a string, or the string itself if it is not YAML."""
    try:
        return parse_yaml(text)
    except yaml.YAMLError:
        return text


def read_study(file: str | Path) -> StudyParams:
    """Return the parameters in a study file."""
    return study_params(read_yaml(Path(file), kind="study file", hint=""), str(file))


def study_params(values: Mapping[str, Any], where: str) -> StudyParams:
    """Return the parameters of a study."""
    return validate_params(StudyParams, values, where)
