"""Ways to damage a file: each takes the bytes of a good file and a `random.Random`, and returns damaged bytes."""

import decimal
import gzip
import io
import json
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

VALUES = [
    None, True, False, [], {}, "", "x", "\ud800", "\x1b[31mred", "../../etc/passwd", "\x00", -1, 0, 1.5, 10**30,
    10**400, -(10**18), float("nan"), float("inf"), [None], [[]], {"a": {}}, {"": 0}, ["x", 1], "ollama", "9" * 5000,
]  # fmt: skip


def places_in(value, path=()):
    """Yield the path of each part of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in items:
        yield (*path, key)
        yield from places_in(held, (*path, key))


CELLS = [
    10**9, -5, 2**31, 2**62, -(2**63), 0, 1.5, 1e308, float("nan"), float("inf"), None, "", "x", "$\\frac$",
    "[" * 9999, '{"measures": [{}]}', '{"measures": 3}', "[1]", '[{"kind": "thought"}]',
    '[{"kind": "tool", "parameters": 1}]', "\x1b[31m\u202e",
    "9" * 5000, True, b"\xff\xfe", [1], [[1], []], {"a": 1}, decimal.Decimal("1e30"), np.datetime64("2026-01-01"),
]  # fmt: skip


SCALARS = (
    ".5 .1 2 3 true random 1e18 -1 0 1e308 -1e400 .nan .inf -.inf 99999999999999999999999 1e-320 0x7fffffffffffffff "
    "0o17 1_000 12:30:45 ~ null yes 'off' \"\" '' 2026-02-30 2026-01-01T00:00:00Z ../../x /etc/passwd /dev/zero a/b "
    ".. . ~root $HOME CON \\x !!python/object:os.system !!python/object/apply:os.system ['id'] !!binary aGk= "
    "!!timestamp x !!int x !!set {a} !!omap [a] !include x [] {} [[[[]]]] {a: {b: c}} *x &x &x [*x] <<: | > - ? : , "
    "# @ % ` \u202e \u0000 \ud7ff é 🐘 \u0085 os:system builtins:len prism_mesa.social.behavior:social_chart"
).split(" ")
LINES = (
    "a0: &a0 [x, x, x, x, x, x]\n" + "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 6)}]" for i in range(1, 9)),
    "seed: 1\nseed: 2",
    "agents: {n: 1000000000000000000}",
    "rounds: 1e18",
    "<<: *a",
    "<<: [{a: 1}, {b: 2}]",
    "? [a, b]\n: c",
    "--- \n...\n---",
    "%YAML 9.9\n---",
    "%TAG ! tag:x,2000:",
    "deep: " + "[" * 400 + "]" * 400,
    "deep: " + "{a: " * 60 + "1" + "}" * 60,
    "long: " + "9" * 5000,
    "\t- tabs",
    "name: ../../x",
    "name: /tmp/x",
    "network: {edges: ../../secret.csv}",
    "statechart: {chart: 'os:system'}",
    "reasoner: {kind: openai, host: 'http://u:p@127.0.0.1:1/'}",
    "? ",
    "\ufeff",
)


def damaged_text(good, draws):
    """Damage text: values, lines, indentation, single characters; sometimes its bytes."""
    lines = good.decode("utf-8", "replace").splitlines() or [""]
    for _ in range(draws.choice((1, 1, 1, 2, 5))):
        at = draws.randrange(len(lines))
        key, colon, _ = lines[at].partition(":")
        cut = draws.randrange(len(lines[at]) + 1)
        match draws.randrange(7):
            case 0 | 1 | 2:
                lines[at] = f"{key}{colon} {draws.choice(SCALARS)}" if colon else draws.choice(SCALARS)
            case 3:
                lines[at:at] = draws.choice((*LINES, lines[at])).splitlines() or [""]
            case 4:
                lines = [*lines[:at], *lines[at + draws.choice((1, 3, 20)) :]] or [""]
            case 5:
                lines[at] = draws.choice((" ", "    ", "\t", "- ")) + lines[at]
            case _:
                lines[at] = lines[at][:cut] + draws.choice("\x00\ud7ff\x85'\"{[&*!") + lines[at][cut:]
    raw = "\n".join(lines).encode("utf-8", "replace")
    return raw if draws.randrange(12) else damaged_bytes(raw, draws)


def damaged_bytes(good, draws):
    """Damage bytes: change, cut, repeat, insert."""
    raw = bytearray(good)
    for _ in range(draws.choice((1, 1, 3, 30))):
        at = draws.randrange(len(raw) + 1)
        match draws.randrange(6):
            case 0 | 1:
                raw[at : at + 1] = bytes([draws.randrange(256)])
            case 2:
                del raw[at : at + draws.choice((1, 4, 100, 10_000))]
            case 3:
                raw[at:at] = raw[at : at + draws.choice((4, 64, 1000))]
            case 4:
                raw[at:at] = draws.choice(
                    (b"\x00" * 8, b"\xff" * 8, b"\xff\xfe", b"\x80", b"\x1f\x8b", b"\r", b'"', b"PAR1")
                )
            case _:
                del raw[at:]
    return bytes(raw)


CELL_TEXTS = (
    *'-1 0 1e400 nan inf NaN 1.5 007 +1 0x10 é 🐘 ../x =cmd() " """ \' a,b a;b null None true now today'.split(),
    *"2026-13-40 0000-00-00 99999-01-01 1e18 -9223372036854775809 9223372036854775808 a;b;c;d like".split(),
    *("", " ", "\x00", "\x1b[31m", "\u202e", "\ud7ff", "\r", "\n", "9" * 400, "x" * 3000),
)


def damaged_csv(good, draws):
    """Damage a CSV: cells, columns, rows, separators, quotes; sometimes its bytes."""
    rows = [line.split(",") for line in good.decode().splitlines()]
    for _ in range(draws.choice((1, 1, 2, 5))):
        row = rows[draws.randrange(len(rows))]
        at = draws.randrange(len(row)) if row else 0
        match draws.randrange(7):
            case 0 | 1 | 2:
                row[at : at + 1] = [draws.choice(CELL_TEXTS)]
            case 3:
                cells = draws.choice(([], [draws.choice(CELL_TEXTS)]))
                for other in rows[draws.randrange(2) :]:
                    other[at : at + 1] = cells
            case 4:
                row.extend([draws.choice(CELL_TEXTS)] * draws.choice((1, 1, 50)))
            case 5:
                rows = [*rows[: draws.randrange(len(rows)) + 1], *rows[: draws.choice((0, 1, 5))]]
            case _:
                rows[0] = [draws.choice((name, name.upper(), f" {name} ", f'"{name}"', "x")) for name in rows[0]]
    raw = _written(rows, draws)
    raw = raw if draws.randrange(10) else damaged_bytes(raw, draws)
    return draws.choice((raw, raw, raw, raw + b"\x00", b"\xef\xbb\xbf" + raw, gzip.compress(raw, 1)))


def _written(rows, draws):
    separator, end = draws.choice((",", ",", ",", ";", "\t", "|", " ")), draws.choice(("\n", "\n", "\r\n", "\r"))
    return end.join(separator.join(row) for row in rows).encode("utf-8", "replace")


def damaged_gzip(good, draws):
    """Damage a packed CSV: before it is packed, or as it is."""
    if draws.randrange(2):
        return damaged_bytes(good, draws)
    return gzip.compress(damaged_csv(gzip.decompress(good), draws), 1)


def damaged_json(good, draws):
    """Damage what JSON holds, one or two places of it; sometimes its bytes."""
    values = json.loads(good)
    places = list(places_in(values))
    kind = draws.choice(("value",) * 6 + ("delete", "delete", "added", "bytes", "deep", "whole", "twice"))
    for _ in range(draws.choice((1, 1, 2))):
        path = draws.choice(places)
        try:
            holder = values
            for key in path[:-1]:
                holder = holder[key]
            match kind:
                case "value":
                    holder[path[-1]] = draws.choice(VALUES)
                case "delete":
                    del holder[path[-1]]
                case "added":
                    (holder if isinstance(holder, dict) else values)[draws.choice(SCALARS)] = draws.choice(VALUES)
                case "twice" if isinstance(holder, list):
                    holder[path[-1]] = [holder[path[-1]]] * 3
        except (KeyError, TypeError, IndexError):  # the first change took it away
            continue
    raw = json.dumps(draws.choice(VALUES) if kind == "whole" else values).encode()
    if kind == "bytes":
        return damaged_bytes(raw, draws)
    if kind == "deep":
        n = draws.choice((500, 990, 5000, 200_000))
        return raw[:-1] + b', "config": ' + b'{"a":' * n + b"1" + b"}" * n + b"}"
    return raw


_COUNT = "with recursive c(x) as (select 1 union all select x + 1 from c)"


def damaged_sqlite(good, draws):
    """Damage an SQLite file: its bytes, its tables, its cells."""
    if draws.randrange(2):
        return damaged_bytes(good, draws)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "x.sqlite"
        file.write_bytes(good)
        with closing(sqlite3.connect(file, isolation_level=None)) as db, suppress(sqlite3.Error):
            table = draws.choice(
                [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
            )
            columns = [row[1] for row in db.execute(f"pragma table_info({table})")]
            column = draws.choice(columns)
            match draws.randrange(8):
                case 0 | 1 | 2:
                    value = draws.choice(["x", "", b"\xff\xfe", 10**15, -5, 1.5, "[]", "null", "9" * 5000, "[" * 9999])
                    db.execute(f"update {table} set {column} = ? where rowid % ? = 0", (value, draws.choice((1, 2))))
                case 3:
                    db.execute(f"update {table} set {column} = cast(? as text)", (b"\xff\xfe\x00",))
                case 4:
                    db.execute(f"drop table {table}")
                case 5:
                    db.execute(f"alter table {table} rename column {column} to other")
                case _:  # a query in place of a table, which may never end
                    db.execute(f"alter table {table} rename to others")
                    endless = ", ".join(f"x as {name}" for name in columns)
                    query = draws.choice(("select * from others", f"{_COUNT} select {endless} from c"))
                    db.execute(f"create view {table} as {query}")
        return file.read_bytes()


def damaged_parquet(good, draws):
    """Damage a Parquet file: its bytes, its columns, what they hold."""
    if draws.randrange(2):
        return damaged_bytes(good, draws)
    table = pq.read_table(io.BytesIO(good))
    name = draws.choice(table.column_names)
    at = table.column_names.index(name)
    match draws.randrange(8):
        case 0 | 1:
            cell, n = draws.choice(CELLS), len(table)
            try:
                cells = pa.array([cell] * n)
            except (pa.ArrowException, OverflowError, ValueError, TypeError):
                cells = pa.array([str(cell)] * n)
            table = table.set_column(at, name, cells)
        case 2:
            table = table.drop_columns([name])
        case 3:
            table = table.rename_columns([draws.choice(SCALARS) if n == name else n for n in table.column_names])
        case 4:
            table = table.append_column(name, table[name])
        case 5:
            table = table.slice(0, draws.choice((0, 1)))
        case 6:
            kind = draws.choice((pa.list_(pa.int64()), pa.decimal128(30, 2), pa.duration("s"), pa.binary(), pa.null()))
            table = table.set_column(at, name, pa.nulls(len(table), kind))
        case _:
            table = table.replace_schema_metadata({"pandas": draws.choice(SCALARS), "ARROW:schema": "x"})
    raw = io.BytesIO()
    pq.write_table(table, raw, compression=draws.choice(("zstd", "gzip", "none")))
    return raw.getvalue()


def parquet_bomb(n=20_000_000, column="round"):
    """Return a Parquet file of a few kB whose column has `n` rows."""
    raw, rows = io.BytesIO(), pa.table({column: pa.array(np.zeros(1_000_000, np.int32))})
    with pq.ParquetWriter(raw, rows.schema, compression="zstd") as writer:
        for _ in range(n // len(rows)):
            writer.write_table(rows)
    return raw.getvalue()


def schema_keys(schema, path=(), within=None):
    """Yield the path of each key of a configuration's JSON schema, with the schema of its value."""
    within = within or schema
    for name, value in within.get("properties", {}).items():
        while "$ref" in value:
            value = schema["$defs"][value["$ref"].rpartition("/")[2]]
        if "properties" in value:
            yield from schema_keys(schema, (*path, name), value)
        else:
            yield (*path, name), value


def value_for(schema, draws):
    """Return a value for a key: allowed by its schema, at the edge of that, or beyond."""
    if draws.randrange(12) == 0:
        return draws.choice(VALUES)
    if "enum" in schema:
        return draws.choice(schema["enum"])
    if "anyOf" in schema:
        return value_for(draws.choice(schema["anyOf"]), draws)
    low = schema.get("minimum", schema.get("exclusiveMinimum", -5))
    high = min(schema.get("maximum", schema.get("exclusiveMaximum", 100)), 400)
    match schema.get("type"):
        case "boolean":
            return draws.choice((True, False))
        case "integer":
            return draws.choice((int(low), int(low) + 1, 3, 7, int(high), int(high) + 1, draws.randint(0, 60)))
        case "number":
            return draws.choice((low, low + 1e-9, 0.5, 1, high, high + 1e-9, draws.random(), -draws.random()))
        case "null":
            return None
    return draws.choice(("random", "1", "", "x", "a:b", "module:object", *SCALARS))
