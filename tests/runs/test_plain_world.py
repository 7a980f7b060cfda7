"""The plain world is the default world of before: its tables have the values that were computed then."""

from hashlib import blake2b

import pytest
from small_runs import TABLES
from worlds import PLAIN_FILE

from prism_mesa import load_config, run

BEFORE = {
    (): (
        "15c1df3341b66e43 e698db4f2f717423 abc6b1bce051eb44 1600261fbfe27491 acc2acf79e0c7da9 edba8e6b64c70204 "
        "4e88140bbcda9acd cc22551867dd26db"
    ),
    ("feed.mode=x_algo", "agents.band=0.2", "agents.activity=0.8"): (
        "e8d77448991d88f7 5e759ef0b1c59f2b a6715a0e437ecf41 253e5d4a06753684 fed610c2858d3088 4d18b3a90500afca "
        "1c573e88a19125a8 f1ee0e925e5813c3"
    ),
}
"""Digests of the tables, in the order of their names, by what is set beside 200 agents and 5 rounds.

They are of a run of the defaults at commit 18b5962, the last one whose defaults were these; but posts of one text have
had other words each since, so those of `posts` are new (with the texts of the corpus they are as they were), and agents
leave when they have read their feeds, so those of `rounds`, `ticks` and `transitions` are new where feeds are read.
"""


def digest_of(table):
    return blake2b(table.astype(str).to_csv(index=False).encode(), digest_size=8).hexdigest()


@pytest.mark.parametrize("given", BEFORE, ids=lambda given: " ".join(given) or "as it is")
def test_the_tables_of_the_plain_world_are_those_of_the_default_world_of_before(given, tmp_path):
    config = load_config(PLAIN_FILE, ["agents.n=200", "rounds=5", "reasoner.kind=rule", *given])
    result = run(config, out=tmp_path, pictures=False)
    tables = {name: result.table(name) for name in sorted(TABLES)}
    tables["agents"] = tables["agents"].drop(columns="unique_id")  # a column that runs had not before
    found = {name: digest_of(table) for name, table in tables.items()}
    assert found == dict(zip(sorted(TABLES), BEFORE[given].split(), strict=True))
