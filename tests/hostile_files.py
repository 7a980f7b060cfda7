"""Every kind of file that PRISM reads, with good files, damage and a reader: `KINDS`.

`tests/runs/test_hostile_files.py` reads some of each kind, `benchmarks/fuzz.py` many.
"""

import json
import random
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import hostile_seeds as good
import yaml
from damage import (
    damaged_csv,
    damaged_gzip,
    damaged_json,
    damaged_parquet,
    damaged_sqlite,
    damaged_text,
    schema_keys,
    value_for,
)

from prism_mesa import EconomyModel
from prism_mesa.analysis.survey.questionnaire import read_questionnaire
from prism_mesa.api.runs import open_run
from prism_mesa.api.studies import Study
from prism_mesa.api.validation import Calibration
from prism_mesa.llm import Ledger
from prism_mesa.params import nest_keys
from prism_mesa.reasoner.distilled import read_distilled
from prism_mesa.runs import run_files
from prism_mesa.runs.config import Config, EconomyConfig, load, load_config, make_config, parse_override
from prism_mesa.runs.ledgers import ledger_stats
from prism_mesa.runs.recorded import recorded_config
from prism_mesa.runs.run_files import read_batches, read_column_names, read_table
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.round.run_round import run_round
from prism_mesa.social.start import start_platform
from prism_mesa.social.world.build import make_world
from prism_mesa.streams import Streams
from prism_mesa.studies.journal import Journals
from prism_mesa.studies.listing import list_folders
from prism_mesa.studies.params import read_study
from prism_mesa.studies.validation.real import load_real_values

MEMORY = 50_000_000
"""Most bytes that a file may unpack to."""


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes:
        name: What it is.
        file: Its name, in a folder of its own.
        seeds: Returns good files, as bytes.
        read: Reads a file; another error than a `BadInputError` is a defect.
        damaged: Returns a damaged file, given a good one and a `random.Random`.
        bombs: Returns small files that would be large, or endless, when read.
        share: Its share of the cases of the benchmark; some take longer.
        is_config: Whether it is a configuration.
    """

    name: str
    file: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], object]
    damaged: Callable[[bytes, random.Random], bytes]
    bombs: Callable[[], list[bytes]] = field(default=list)
    share: float = 1.0
    is_config: bool = False


# Configurations, studies, calibrations, questions


def _read_config(file: Path) -> object:
    """Read it as `prism run`, and as `prism economy` does where it is one of nations."""
    nations = "economy" in file.read_bytes()[:4000].decode("utf-8", "replace")
    return load(EconomyConfig if nations else Config, file)


def _read_nations(file: Path) -> object:
    """Read it, make its model with nations that go by a rule, and let a quarter pass."""
    config = load(EconomyConfig, file)
    policy = "taylor" if config.economy.policy == "llm" else config.economy.policy
    economy = config.economy.model_copy(update={"policy": policy})
    model = EconomyModel(config.model_copy(update={"economy": economy}))
    model.step()
    return repr(model)


def _read_and_begin(file: Path) -> object:
    """Read it, and if the run is a small one, make its model, decided by rule, and run it, three rounds at most."""
    config = load_config(file)
    if config.agents.n > 500 or config.ticks_per_round > 100 or config.feed.size > 500:
        return config
    model = SocialModel(make_config(config.model_dump() | {"reasoner": {"kind": "rule"}, "content": "none"}))
    for _ in range(min(config.rounds, 3)):
        model.step()
    return model.round


@cache
def _keys(kind: type) -> list[tuple[tuple[str, ...], dict]]:
    return list(schema_keys(kind.model_json_schema()))


def _damaged_config(kind: type) -> Callable[[bytes, random.Random], bytes]:
    """Return a function that damages its text, or sets some keys to values that are allowed, or nearly."""

    def damaged(raw: bytes, draws: random.Random) -> bytes:
        if draws.randrange(3) == 0:
            return _damaged_yaml(raw, draws)
        values = yaml.safe_load(raw)
        for path, schema in draws.sample(_keys(kind), draws.choice((1, 1, 2, 3, 6))):
            group = values
            for name in path[:-1]:
                group = group.setdefault(name, {})
            group[path[-1]] = value_for(schema, draws)
        return yaml.safe_dump(values, allow_unicode=False).encode("utf-8", "replace")

    return damaged


def _damaged_yaml(raw: bytes, draws: random.Random) -> bytes:
    """Damage its text, or its values, written as JSON, which is YAML too."""
    if draws.randrange(2):
        return damaged_text(raw, draws)
    return damaged_json(json.dumps(yaml.safe_load(raw), default=str).encode(), draws)


def _read_overrides(file: Path) -> object:
    """Read each line as the argument ``key=value`` of a command."""
    lines = file.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    return make_config(nest_keys(dict(parse_override(line) for line in lines if line)), "override")


def _read_study(file: Path) -> object:
    """Read it, and design its runs."""
    study = Study(file, out=file.parent)
    return repr(study), study.design.n_runs, next(iter(study.design.runs()))


def _read_calibration(file: Path) -> object:
    return repr(Calibration(file, out=file.parent))


# What users bring


def _world(key: str) -> Callable[[Path], object]:
    """Return what makes a world with a file under this key, as `SocialModel` does."""
    group, name = key.split(".")

    def read(file: Path) -> object:
        values = {"agents": {"n": 20}, "network": {"mean_degree": 4}, "posts": {"n_topics": 8}, "rounds": 30}
        values["files"] = {"max_bytes": MEMORY}
        if key == "network.edges":  # the agents are those of the file
            values["network"], values["agents"] = {}, {}
        values[group][name] = str(file)
        return make_world(SocialParams.model_validate(values), Streams(1))

    return read


def _read_distilled(file: Path) -> object:
    """Read it, and let it decide in a round."""
    read_distilled(file)
    values = {
        "agents": {"n": 12, "activity": 0.9, "band": 0.4},
        "network": {"mean_degree": 4},
        "posts": {"n_topics": 8},
    }
    values |= {"ticks_per_round": 4, "reasoner": {"kind": "distilled", "distilled": str(file)}}
    return run_round(start_platform(SocialParams.model_validate(values)))


def _read_real(file: Path) -> object:
    """Read it as the data that `prism validate` is given in a folder."""
    folder = file.parent / "cascades_voterfraud"
    folder.mkdir()
    file.replace(folder / file.name)
    return load_real_values(file.parent)


# What runs and studies leave


def _read_manifest(file: Path) -> object:
    entries = [repr(entry) for entry in list_folders(file.parent)]
    opened = open_run(file.parent)
    return entries, recorded_config(file.parent), opened.manifest, repr(opened)


def _read_lock(file: Path) -> object:
    """Read it beside the manifest of a run that says that it is running."""
    manifest = json.loads(good.run_files()["manifest.json"]) | {"status": "running"}
    (file.parent / "manifest.json").write_text(json.dumps(manifest))
    return [repr(entry) for entry in list_folders(file.parent)], repr(open_run(file.parent))


def _read_ledger(file: Path) -> object:
    with Ledger(file, read_only=True) as ledger:
        held = [ledger.get("k3"), ledger.llms(), ledger.runs(), ledger.asked("r")]
    return ledger_stats(file), held


@contextmanager
def _little_memory() -> object:
    known = run_files.memory_bytes
    run_files.memory_bytes = lambda: 2 * MEMORY
    try:
        yield
    finally:
        run_files.memory_bytes = known


def _table(name: str) -> Callable[[Path], object]:
    """Return what reads a table of a run whole, and in parts."""

    def read(file: Path) -> object:
        with _little_memory():
            rows = read_table(file.parent, name)
            return rows, sum(
                len(batch) for batch in read_batches(file.parent, name, read_column_names(file.parent, name))
            )

    return read


def _read_journal(file: Path) -> object:
    (file.parent / "study.json").write_bytes(good.records()[0])
    entries = [repr(entry) for entry in list_folders(file.parent.parent)]
    with Journals([file]) as journals:
        return [
            entries,
            list(journals.entries()),
            journals.calls(),
            journals.entry("r3"),
            journals.rows("r3", "rounds"),
        ]


def _read_record(file: Path) -> object:
    return [repr(entry) for entry in list_folders(file.parent.parent)]


def _tables() -> list[Kind]:
    """Return a kind for each of some tables of a run."""
    columns = {"rounds": "likes", "posts": "post", "agents": "id", "transitions": "round"}
    return [
        Kind(f"table of a run: {name}", file, good.of_run(file), _table(name), damaged_parquet, good.big(column), 0.3)
        for name, column in columns.items()
        for file in [f"{name}.parquet"]
    ]


YAML = (_damaged_yaml, lambda: good.YAML_BOMBS)
CSV = (damaged_csv, good.csv_bombs)
JSON = (damaged_json, good.json_bombs)
EDGES, POSTS, PROFILES = _world("network.edges"), _world("posts.file"), _world("agents.profiles")

NATIONS = _damaged_config(EconomyConfig)

PLATFORM = _damaged_config(Config)
KINDS = [
    Kind("configuration", "a.yaml", good.yaml_files("*.yaml"), _read_config, PLATFORM, YAML[1], is_config=True),
    Kind("configuration, begun", "a.yaml", good.small_configs, _read_and_begin, PLATFORM, YAML[1], is_config=True),
    Kind("configuration of nations", "a.yaml", good.nations, _read_nations, NATIONS, YAML[1], 0.5, is_config=True),
    Kind("overrides", "a.txt", good.overrides, _read_overrides, damaged_text, is_config=True),
    Kind("study", "a.yaml", good.studies, _read_study, *YAML),
    Kind("study as shipped", "a.yaml", good.yaml_files("studies/*.yaml"), read_study, *YAML),
    Kind("calibration", "a.yaml", good.calibrations, _read_calibration, *YAML, 0.5),
    Kind("questions", "a.yaml", good.questionnaires, read_questionnaire, *YAML),
    Kind("edges, CSV", "a.csv", good.csv(good.edges), EDGES, *CSV),
    Kind("edges, packed", "a.csv.gz", good.packed(good.edges), EDGES, damaged_gzip, good.gzip_bombs),
    Kind("edges, Parquet", "a.parquet", good.parquet(good.edges), EDGES, damaged_parquet, good.big("src", "dst")),
    Kind("posts, CSV", "a.csv", good.csv(good.posts), POSTS, *CSV),
    Kind("posts, Parquet", "a.parquet", good.parquet(good.posts), POSTS, damaged_parquet, good.big("text")),
    Kind("profiles, CSV", "a.csv", good.csv(good.profiles), PROFILES, *CSV),
    Kind("profiles, Parquet", "a.parquet", good.parquet(good.profiles), PROFILES, damaged_parquet, good.big("agent")),
    Kind("distilled model", "distilled.json", good.distilled, _read_distilled, *JSON, 0.5),
    Kind("sizes to validate with", "cascade_size_histogram.csv", good.sizes, _read_real, *CSV, 0.5),
    Kind("manifest", "manifest.json", good.of_run("manifest.json"), _read_manifest, *JSON),
    Kind("lock of a run", ".lock", good.locks, _read_lock, *JSON, 0.5),
    Kind("ledger", "decisions.sqlite", good.ledgers, _read_ledger, damaged_sqlite),
    Kind("journal of a study", "journal.sqlite", good.journals, _read_journal, damaged_sqlite),
    Kind("record of a study", "study.json", good.records, _read_record, *JSON, 0.5),
    *_tables(),
]
