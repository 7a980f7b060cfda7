"""What can be wrong with a manifest or a ledger: a way to damage each, drawn by a seed. Nothing here is a test."""

import json
import random
import shutil
import sqlite3

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
