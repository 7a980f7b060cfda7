"""What can be wrong with a manifest, a ledger or a table: a way to damage each. Nothing here is a test."""

import decimal
import json
import random
import shutil
import sqlite3

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

VALUES = [
    None, True, False, [], {}, "", "x", "\ud800", "\x1b[31mred", "../../etc/passwd", "\x00", -1, 0, 1.5, 10**30,
    10**400, -(10**18), float("nan"), float("inf"), [None], [[]], {"a": {}}, {"": 0}, ["x", 1], "ollama", "9" * 5000,
]  # fmt: skip


def places_of(value, path=()):
    """Yield the path of everything in a JSON value but the whole."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in items:
        yield (*path, key)
        yield from places_of(held, (*path, key))


def _parent(value, path):
    for key in path[:-1]:
        value = value[key]
    return value


def damaged_manifest(text, seed):
    """Return the bytes of a manifest with one or two things wrong in it."""
    draws = random.Random(seed)
    kind = draws.choice(["value"] * 6 + ["delete"] * 3 + ["bytes", "cut", "deep", "added", "whole", "dots"])
    manifest = json.loads(text)
    # the lists of notes and the machine's facts are read by nobody
    places = [path for path in places_of(manifest) if path[0] not in ("packages", "notes", "recorded")]
    for _ in range(draws.choice((1, 1, 2))):
        path = draws.choice(places)
        try:
            holder = _parent(manifest, path)
            match kind:
                case "value":
                    holder[path[-1]] = draws.choice(VALUES)
                case "delete":
                    del holder[path[-1]]
                case "added":
                    (holder if isinstance(holder, dict) else manifest)["surprise"] = draws.choice(VALUES)
                case "dots":
                    manifest["config"]["a.b.c"] = manifest["config"]["seed.x"] = draws.choice(VALUES)
        except (KeyError, TypeError, IndexError):  # the first change took it away
            continue
    if kind == "whole":
        manifest = draws.choice(VALUES)
    raw = json.dumps(manifest).encode()
    match kind:
        case "bytes":
            at = draws.randrange(len(raw))
            raw = raw[:at] + bytes([draws.randrange(256)]) + raw[at + 1 :]
        case "cut":
            raw = raw[: draws.randrange(len(raw))]
        case "deep":
            n = draws.choice((500, 990, 5000, 200_000))
            raw = raw[:-1] + b', "config": ' + b'{"a":' * n + b"1" + b"}" * n + b"}"
    return raw


def with_manifest(run_dir, raw, to):
    """Return a copy of a run, whose tables and ledger are links, with another manifest."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    for file in run_dir.iterdir():
        if file.name != "manifest.json":
            (shutil.copytree if file.is_dir() else shutil.copyfile)(file, to / file.name)
    (to / "manifest.json").write_bytes(raw)
    return to


def damage_ledger(path, seed):
    """Damage a ledger in its place."""
    draws = random.Random(seed)
    match draws.choice(
        ["flip"] * 3 + ["cut", "types", "types", "types", "drop", "text", "empty", "rename", "view", "blob"]
    ):
        case "flip":
            raw = bytearray(path.read_bytes())
            for _ in range(draws.choice((1, 5, 200))):
                raw[draws.randrange(len(raw))] = draws.randrange(256)
            path.write_bytes(raw)
        case "cut":
            raw = path.read_bytes()
            path.write_bytes(raw[: draws.randrange(len(raw))])
        case "text":
            path.write_text("dear diary, " * draws.choice((1, 200)))
        case "empty":
            path.write_bytes(b"")
        case "types":
            table, column = draws.choice(
                [
                    ("answers", c)
                    for c in ("prompt", "options", "llm", "digest", "decoding", "raw", "choice", "latency_ms")
                ]
                + [("asked", c) for c in ("round", "tick", "agent", "key", "source", "attempts", "run")]
            )
            value = draws.choice(
                ["x", "", b"\xff\xfe", 10**15, -5, 1.5, "[]", '{"pmi": 1}', "null", "9" * 5000, "[" * 9999]
            )
            _changed(path, f"UPDATE {table} SET {column} = ? WHERE rowid % ? = 0", (value, draws.choice((1, 3))))
        case "blob":
            _changed(path, "UPDATE answers SET raw = CAST(? AS TEXT)", (b"\xff\xfe\x00",))
        case "drop":
            _changed(path, f"DROP TABLE {draws.choice(('answers', 'asked'))}")
        case "rename":
            _changed(path, "ALTER TABLE asked RENAME COLUMN tick TO tock")
        case "view":
            _changed(path, "ALTER TABLE asked RENAME TO others")
            _changed(path, "CREATE VIEW asked AS SELECT * FROM others")


def _changed(path, query, values=()):
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute(query, values)
    finally:
        db.close()


CELLS = [
    10**9, -5, 2**31, 2**62, -(2**63), 0, 1.5, 1e308, float("nan"), float("inf"), None, "", "x", "$\\frac$",
    "[" * 9999, '{"measures": [{}]}', '{"measures": 3}', "[1]", '[{"kind": "thought"}]',
    '[{"kind": "tool", "parameters": 1}]', "\x1b[31m\u202e",
    "9" * 5000, True, b"\xff\xfe", [1], [[1], []], {"a": 1}, decimal.Decimal("1e30"), np.datetime64("2026-01-01"),
]  # fmt: skip
"""What a cell may hold that it should not."""


def damage_table(run_dir, seed):
    """Damage one of a run's tables in its place, and return what was done."""
    draws = random.Random(seed)
    file = draws.choice(sorted(run_dir.glob("*.parquet")))
    kind = draws.choice(
        ["cell"] * 6
        + ["column"] * 3
        + ["drop", "drop", "rename", "swap", "twice", "nested", "empty", "no rows", "shuffle", "flip", "cut", "text"]
        + ["folder", "parts", "gone", "meta", "broken text", "cast"]
    )
    if kind in ("flip", "cut", "text", "empty", "folder", "gone"):
        _damage_bytes(file, kind, draws)
        return file.name, kind
    table = pq.read_table(file)
    place = draws.randrange(table.num_columns)
    name = table.column_names[place]
    match kind:
        case "cell":
            value = draws.choice(CELLS)
            cells = table[name].to_pylist()
            for at in draws.sample(range(len(cells)), min(len(cells), draws.choice((1, 3)))):
                cells[at] = value
            table = _with_column(table, place, cells)
        case "column":
            table = _with_column(table, place, [draws.choice(CELLS)] * len(table))
        case "drop":
            table = table.remove_column(place)
        case "rename":
            table = table.rename_columns([f"{one} " if one == name else one for one in table.column_names])
        case "swap":
            other = draws.choice(table.column_names)
            table = table.set_column(place, name, table[other])
        case "twice":
            table = table.append_column(name, table[draws.choice(table.column_names)])
        case "nested":
            table = table.set_column(place, name, pa.array([{"a": one} for one in table[name].to_pylist()]))
        case "no rows":
            table = table[:0]
        case "shuffle":
            table = table.take(draws.sample(range(len(table)), draws.randrange(len(table) + 1)))
        case "meta":
            said = draws.choice((b"{", b"[]", b'{"index_columns": ["x"], "columns": []}', b"\xff"))
            table = table.replace_schema_metadata({b"pandas": said, b"PANDAS_ATTRS": said})
        case "broken text":
            raw = pa.array([b"\xff\xfe"] * len(table), pa.binary())
            table = table.set_column(place, name, raw.view(pa.string()))
        case "cast":
            to = draws.choice(
                (pa.int64(), pa.uint64(), pa.float32(), pa.string(), pa.binary(), pa.float16(), pa.null())
            )
            try:
                table = table.set_column(place, name, table[name].cast(to))
            except pa.ArrowException:
                table = table.set_column(place, name, pa.nulls(len(table), to))
        case "parts":
            file.unlink()
            file.mkdir()
            pq.write_table(table, file / "part-00000.parquet")
            table = table.remove_column(place) if draws.random() < 0.5 else table
            file /= draws.choice(("part-00001.parquet", "other"))
    pq.write_table(table, file)
    return file.name, kind, name


def _with_column(table, place, cells):
    try:
        column = pa.array(cells)
    except (pa.ArrowException, OverflowError, TypeError):  # they do not go together
        column = pa.array([str(cell).encode() for cell in cells])
    return table.set_column(place, table.column_names[place], column)


def _damage_bytes(file, kind, draws):
    raw = bytearray(file.read_bytes())
    match kind:
        case "flip":
            for _ in range(draws.choice((1, 5, 200))):
                raw[draws.randrange(len(raw))] = draws.randrange(256)
        case "cut":
            del raw[draws.randrange(len(raw)) :]
        case "text":
            raw = b"dear diary"
        case "empty":
            raw = b""
    file.unlink()
    if kind == "folder":
        file.mkdir()
    elif kind != "gone":
        file.write_bytes(raw)
