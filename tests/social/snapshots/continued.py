"""Models that are stopped, put down as bytes, and go on in another model; and everything in which two models differ."""

import io
import json
from collections.abc import Mapping
from enum import Enum
from types import FunctionType, MethodType

import numpy as np
from worlds import differing, ran


def as_bytes(snapshot):
    """Return a snapshot as the bytes of an .npz file without pickles."""
    arrays = {}

    def without_arrays(value):
        if isinstance(value, np.ndarray):
            arrays[f"a{len(arrays)}"] = value
            return {"array": len(arrays) - 1}
        if isinstance(value, dict):
            return {key: without_arrays(held) for key, held in value.items()}
        return [without_arrays(held) for held in value] if isinstance(value, list) else value

    text = json.dumps(without_arrays(snapshot))
    file = io.BytesIO()
    np.savez(file, text=np.frombuffer(text.encode(), np.uint8), **arrays, allow_pickle=False)
    return file.getvalue()


def from_bytes(data):
    """Return what `as_bytes` was given."""
    arrays = np.load(io.BytesIO(data), allow_pickle=False)

    def with_arrays(value):
        if isinstance(value, dict):
            if value.keys() == {"array"}:
                return arrays[f"a{value['array']}"]
            return {key: with_arrays(held) for key, held in value.items()}
        return [with_arrays(held) for held in value] if isinstance(value, list) else value

    return with_arrays(json.loads(arrays["text"].tobytes()))


def leaves(value, where=""):
    """Yield each value of a snapshot that is no list or dict, with the way to it."""
    if isinstance(value, dict | list):
        for key, held in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(held, f"{where}/{key}")
    else:
        yield where, value


def unlike(one, other):
    """Return the ways to what differs between two snapshots."""
    a, b = dict(leaves(one)), dict(leaves(other))
    return [way for way in a | b if way not in a or way not in b or not _same(a[way], b[way])]


def _same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and (a == b or a != a)


def going_on(make, rounds=4, at=2):
    """Return a model that has done all its rounds, and one that took over after `at` of them from a third."""
    whole, stopped, other = (make() for _ in range(3))
    ran(whole, rounds)
    data = as_bytes(ran(stopped, at).snapshot())
    other.restore(from_bytes(data))
    assert (unlike(stopped.snapshot(), other.snapshot()), list(inner_differences(stopped, other))) == ([], [])
    for table, rows in stopped.recorder.tables.items():  # the recorder is not the model's: it goes on by itself
        other.recorder.tables.setdefault(table, []).extend(rows)
    return whole, ran(other, rounds - at)


def tell_apart(whole, other):
    """Return in what two models differ: in what they tell, in their snapshots, and in what is in them."""
    told = [name for name in differing(whole, other) if name != "feed"]  # what stands behind the end of a feed is left
    return [*told, *unlike(whole.snapshot(), other.snapshot()), *sorted(inner_differences(whole, other))]


MADE_AGAIN = {
    "WalkTables": {"_guards"},  # those that have not given a value in the walk
    "Cell": {"root", "mapping_root", "unguarded_root", "outcomes"},  # worked out when first asked for
    "Exposure": {"roots"},  # with room for more
    "Feeds": {"_feeds_by_acts"},  # made when a reader needs one
    "Engagements": {"carried_rows"},  # noted anew as each round opens
    "Relations": {"_hidden", "_hidden_rows"},  # made when first asked for, of what is muted and blocked
    "Population": {"feed"},  # what stands behind the end of a feed
    "_HashingEmbedder": {"_axes_by_word"},  # places of words
    "Texts": {"_vectors"},  # with room for more
    "AnswerStore": {"_is_partial"},  # where a ledger has them, it is asked
    "FunctionClient": {"function"},  # the LLM itself
    "Budget": {"_last_clock_s", "clock"},  # of the clock on the wall
    "FollowNetwork": {"n_followers", "checksum"},  # worked out when first asked for; memory
    "WalkBufferPool": {"_buffers", "_made_with", "previews", "preview_key"},  # memory
    "Reasoner": {"_background", "_lock", "_dispatcher"},  # threads
    "LLMClient": {"_background", "_lock", "_dispatcher"},
    "_OpenChoiceHandler": {"logged_bugs"},  # tracebacks that this process has logged
    "Memory": {"_rows", "_written"},
}
"""Attributes by class that hold nothing of a run, or nothing that is not worked out once more."""
LEFT_OUT = {"_event_list", "_event_generators", "_default_schedule", "_all_agents", "_agents_by_type", "_agents_by_row"}
LEFT_OUT |= {
    "_has_all_objects",
    "_is_sorted",
    "agent_id_counter",
    "scenario",
    "_scenario",
    "data_registry",
    "step",
    "_user_step",
}


def inner_differences(one, other, where="model", seen=None):
    """Yield the ways to attributes, of whatever is reached from two objects, that differ."""
    seen = set() if seen is None else seen
    if id(one) in seen:
        return
    if type(one) is not type(other):
        yield f"{where}: {type(one).__name__}, {type(other).__name__}"
    elif isinstance(one, np.ndarray):
        if one.dtype != other.dtype or not np.array_equal(one, other):
            yield where
    elif isinstance(one, Mapping):
        seen.add(id(one))
        if not all(a == b for a, b in zip(map(_known, one), map(_known, other), strict=False)) or len(one) != len(
            other
        ):
            yield f"{where}: keys"
        for (key, a), b in zip(one.items(), other.values(), strict=False):
            yield from inner_differences(a, b, f"{where}[{_known(key)}]", seen)
    elif isinstance(one, list | tuple) or type(one).__name__ == "deque":
        seen.add(id(one))
        if len(one) != len(other):
            yield f"{where}: length"
        for place, (a, b) in enumerate(zip(one, other, strict=False)):
            yield from inner_differences(a, b, f"{where}[{place}]", seen)
    elif isinstance(one, set):
        if sorted(map(str, one)) != sorted(map(str, other)):
            yield where
    elif isinstance(one, Enum | type | FunctionType | MethodType) or callable(one):
        pass
    elif (own := _attributes(one)) and type(one).__module__.startswith(("prism_mesa", "worlds", "mesa")):
        seen.add(id(one))
        left = LEFT_OUT | MADE_AGAIN.get(type(one).__name__, set())
        for name in sorted(own.keys() - left):
            yield from inner_differences(own[name], _attributes(other).get(name), f"{where}.{name}", seen)
    elif not (one == other or one != one) and type(one).__eq__ is not object.__eq__:
        yield where


def _attributes(thing):
    slots = getattr(type(thing), "__slots__", ())
    own = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    return own | getattr(thing, "__dict__", {})


def _known(key):
    return key if isinstance(key, str | int | tuple) and not hasattr(key, "source") else str(key)
