"""Good files of every kind that PRISM reads, and small files that would be large, or endless, when read."""

import gzip
import io
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from damage import parquet_bomb

from prism_mesa.llm import AskedRow, Ledger, StoredAnswer
from prism_mesa.runs.identity import Identity
from prism_mesa.runs.social import run
from prism_mesa.studies.engines.job import Outcome
from prism_mesa.studies.journal import Journal

CONFIGS = Path(__file__).parents[1] / "configs"
DEPTH = 100_000

# Configurations


def yaml_files(*patterns: str) -> Callable[[], list[bytes]]:
    return lambda: [f.read_bytes() for p in patterns for f in sorted(CONFIGS.glob(p)) if f.name != "survey.yaml"]


YAML_BOMBS = [
    "\n".join(["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 64))]).encode(),
    b"a: &a [*a]",
    b"a: &a {<<: *a}",
    b"[" * DEPTH,
    b"{a: " * DEPTH,
    b"- " * DEPTH,
    b"a:\n" + b"".join(b" " * i + b"a:\n" for i in range(1, 2000)),
    b"seed: " + b"9" * 1_000_000,
    b"name: " + b"x" * 5_000_000,
    b"agents: {n: 1" + b"0" * 400 + b"}",
    b"agents: {n: 1000000000000000000}\nreasoner: {kind: rule}",
    b"rounds: 1000000000000000000\nticks_per_round: 1000000000000000000",
    b"feed: {size: 1000000000000000000}",
    b"posts: {n_topics: 1000000000000000000}",
    b"statechart: {max_history_depth: 1000000000000000000}",
    b"network: {mean_degree: 1.0e+18}",
    b"!!python/object/apply:os.system ['touch ../outside']",
    b"name: !!python/name:os.system",
    b"? " * 5000,
    b"a: !!int 1:" + b"1:" * 3000,
    b"clock: {start: 99999-01-01T00:00:00Z}",
    b"\xff\xfea\x00",
    b"",
    b"\x00",
]


def small_configs() -> list[bytes]:
    return [
        b"agents: {n: 12, activity: .9}\nnetwork: {mean_degree: 4}\nrounds: 2\nticks_per_round: 4\n"
        b"posts: {n_topics: 8}\n"
        b"reasoner: {kind: rule}\n",
        b"agents: {n: 12, band: .4, session: 3}\nnetwork: {kind: watts_strogatz, mean_degree: 4}\nrounds: 2\n"
        b"ticks_per_round: 4\nfeed: {mode: x_algo, size: 5, glances: 3, window: 2}\nreasoner: {kind: rule}\n"
        b"name: two\n",
        b"agents: {n: 12}\nnetwork: {kind: erdos_renyi, mean_degree: 4}\nutility: {sensitivity: .1, mood: 1}\n"
        b"clock: {start: 2026-01-01T00:00:00Z, round_minutes: 30}\nrecords: {transitions: .5}\nticks_per_round: 4\n"
        b"reasoner: {kind: rule}\nstatechart: {max_history_depth: 3, default_timeout_ticks: 2}\n",
        b"agents: {n: 12, activity: .9, session: 3}\nnetwork: {mean_degree: 4}\nrounds: 3\nticks_per_round: 4\n"
        b"utility: {sensitivity: .1}\nreasoner: {kind: rule}\ninterventions:\n"
        b"  - {at: 1, set: {feed.mode: x_algo, utility.mood: 2}}\n"
        b"  - {at: 2, set: {feed: {mode: random, glances: 2}, agents: {persistence: .5, band: .3}}}\n",
    ]


def nations() -> list[bytes]:
    return [
        b"economy: {policy: taylor}\nrounds: 4\n",
        b"economy: {policy: random, first_quarter: 2025Q2}\nseed: 3\nrounds: 4\nname: two\n",
        b"economy:\n  policy: nothing\n  nations:\n    - {name: Aland, inflation: 3}\n    - {name: Borg}\nrounds: 2\n",
    ]


def questionnaires() -> list[bytes]:
    return [(CONFIGS / "survey.yaml").read_bytes()]


def studies() -> list[bytes]:
    return [
        b"question: Which feed?\nbase: {agents: {n: 50}, rounds: 3, reasoner: {kind: rule}}\n"
        b"arms: {a: {feed.mode: random}, b: {feed.mode: chronological}}\n"
        b"vary: {agents.activity: [.1, .5], agents.band: [.1, .2]}\n"
        b"seeds: 3\nmeasures: [likes, cascade_max]\nexpect:\n  - 'likes: a > b'\nlimits: {seconds: 9, memory_gb: 2}\n"
        b"keep: measures\ncollect: [rounds]\n",
        b"question: How much?\nbase: {agents.n: 50, rounds: 3}\nset: {reasoner.kind: rule}\n"
        b"vary: {agents.activity: [.1, .5]}\n"
        b"seeds: [1, 2, 9]\ndesign: {lhs: 8, seed: 3}\n",
    ]


def calibrations() -> list[bytes]:
    return [
        b"base: {agents.n: 60, rounds: 3, reasoner.kind: rule}\nparameters: {agents.activity: [.05, .5], "
        b"agents.post_rate: {low: .01, high: .5, log: true}}\nfit:\n  likes: {target: 30, tolerance: 5, data: a}\n"
        b"holdout:\n  reshares: {target: 3, tolerance: 1, data: b}\nseeds: 2\nruns: 20\nbatch: 4\n"
        b"limits: {seconds: 5}\n"
    ]


def overrides() -> list[bytes]:
    return [b"agents.n=30\nfeed.mode=random\nnetwork.kind=watts_strogatz\nseed=3"]


# What users bring


@cache
def edges() -> pa.Table:
    return pa.table({"src": [i % 20 for i in range(60)], "dst": [(i * 7 + 1) % 20 for i in range(60)]})


@cache
def posts() -> pa.Table:
    n = 24
    return pa.table(
        {
            "text": [f"post {i} on music with words" for i in range(n)],
            "topic": [("music", "sports", None)[i % 3] for i in range(n)],
            "author": [str(i % 20) for i in range(n)],
            "created_at": [f"2026-01-01T{i:02}:00:00Z" for i in range(n)],
            "media_type": [("photo", None)[i % 2] for i in range(n)],
            "media_description": [("a cat", None)[i % 2] for i in range(n)],
        }
    )


@cache
def profiles() -> pa.Table:
    n = 20
    return pa.table(
        {
            "agent": [str(i) for i in range(n)],
            "name": [f"Agent {i}" for i in range(n)],
            "engagement_threshold": [i / n for i in range(n)],
            "timeout_threshold": [i + 1 for i in range(n)],
            "activity": [0.5] * n,
            "like": [0.5] * n,
            "reply": [0.25] * n,
            "reshare": [0.25] * n,
            "openness": [1 + i % 5 for i in range(n)],
        }
    )


def csv(table: Callable[[], pa.Table]) -> Callable[[], list[bytes]]:
    def seeds() -> list[bytes]:
        raw = io.BytesIO()
        pyarrow.csv.write_csv(table(), raw, pyarrow.csv.WriteOptions(quoting_style="needed"))
        return [raw.getvalue().replace(b'"', b"")]

    return seeds


def packed(table: Callable[[], pa.Table]) -> Callable[[], list[bytes]]:
    return lambda: [gzip.compress(raw, 1) for raw in csv(table)()]


def parquet(table: Callable[[], pa.Table]) -> Callable[[], list[bytes]]:
    def seeds() -> list[bytes]:
        raw = io.BytesIO()
        pq.write_table(table(), raw, compression="zstd")
        return [raw.getvalue()]

    return seeds


def gzip_bombs() -> list[bytes]:
    return [gzip.compress(b"src,dst\n" + b"1,2\n" * 25_000_000, 9), gzip.compress(b"\x00" * 200_000_000, 9)]


def csv_bombs() -> list[bytes]:
    return [
        b"src,dst,text,agent\n" + b'"' + b"x" * 3_000_000,
        b"," * 900_000,
        b"\n" * 3_000_000,
        b"src,dst\n" + b"1," * 100_000 + b"\n",
        b"text,agent,src,dst\n" + b"\x00" * 1_000_000,
        b"src\tdst;text|agent\n1\t2;3|4\n" * 3,
    ]


def big(*names: str) -> Callable[[], list[bytes]]:
    """Return a function that makes a Parquet file with very many rows for each column."""
    return lambda: [parquet_bomb(column=name) for name in names]


# What runs leave

_WORLD = {"agents": {"n": 12, "activity": 0.9}, "network": {"mean_degree": 4}, "rounds": 2, "ticks_per_round": 5}
_WORLD |= {"posts": {"n_topics": 8}, "reasoner": {"kind": "rule"}}


@cache
def run_files() -> dict[str, bytes]:
    """Return the files of a small run by name."""
    with TemporaryDirectory() as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = run(_WORLD, out=out).run_dir
        return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def of_run(name: str) -> Callable[[], list[bytes]]:
    return lambda: [run_files()[name]]


def json_bombs() -> list[bytes]:
    deep = b'{"a": ' * DEPTH + b"1" + b"}" * DEPTH
    return [
        deep,
        b"[" * DEPTH,
        b'{"config": ' + b"9" * 1_000_000 + b"}",
        b'{"seed": 1e999999}',
        b"",
        b"null",
        b"\xef\xbb\xbf{}",
    ]


def ledgers() -> list[bytes]:
    with TemporaryDirectory() as folder:
        with Ledger(Path(folder) / "x.sqlite") as ledger:
            answers = [
                StoredAnswer(
                    f"k{i}", f"prompt {i}", '["composing", "scrolling"]', "llm", "d", "{}", "composing", "composing"
                )
                for i in range(20)
            ]
            ledger.write(answers, [AskedRow(i % 2, i, i, f"k{i}", "llm", run="r") for i in range(20)])
        return [(Path(folder) / "x.sqlite").read_bytes()]


def journals() -> list[bytes]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "journal.sqlite"
        journal = Journal(file)
        for i in range(8):
            facts = {"cpu_s": 1.0, "calls": 3, "tokens": 5, "notes": ["x"], "by_source": {"rule": 3}}
            outcome = Outcome(f"r{i}", "done", "", {"likes": float(i)}, facts, {"rounds": b"arrow"})
            journal.put(outcome, {"likes": "v"}, Identity("c", "d", "e"), f"seed {i}", kept=False)
        journal.close()
        return [file.read_bytes()]


def sizes() -> list[bytes]:
    return [b"size,n\n" + b"".join(b"%d,%d\n" % (i, 1000 // i) for i in range(1, 40))]


def distilled() -> list[bytes]:
    return [(CONFIGS / "studies" / "smollm2.json").read_bytes()]


def locks() -> list[bytes]:
    return [b'{"pid": 7, "host": "here", "since": "2026-01-01T00:00:00+00:00", "round": 3, "locks": false}']


def records() -> list[bytes]:
    return [
        b'{"kind": "study", "name": "two", "runs": 8, "made": {"git": null, "started": "2026-01-01T00:00:00+00:00"}}'
    ]
