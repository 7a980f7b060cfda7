"""What a snapshot of a model holds beside its platform: Mesa's state, agents as objects, and fields of your own."""

import random
from collections.abc import Container, Mapping
from typing import Any, Final

import mesa
import numpy as np
from mesa import DataCollector

from prism_mesa.errors import DataError, NotRestorableError
from prism_mesa.snapshot import Plain, plain, restore_object, restored, take_snapshot
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.mesa_agents import PopulationModel

_AGENT_FIELDS: Final = frozenset({"row", "model", "unique_id", "pos"})
"""Fields that every agent has."""
_COLLECTED: Final = ("model_vars", "tables", "_collection_steps", "_agent_records", "_validated")


def _is_simple(value: object) -> bool:
    """Return whether a value is stored as it is: a number, a text, a truth value, None."""
    return value is None or type(value) in (bool, int, float, str)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def save_user_fields(model: object, known: Container[str]) -> dict[str, Plain]:
    """Return the fields that you gave a model: simple ones, and the snapshots of others.

    Raises:
        NotRestorableError: If another one has no `snapshot` and `restore`.
    """
    fields = {name: value for name, value in vars(model).items() if name not in known}
    others = {name: value for name, value in fields.items() if not _is_simple(value)}
    try:
        states = {name: take_snapshot(value) for name, value in others.items()}
    except NotRestorableError as error:
        raise NotRestorableError(f"the model's {', '.join(others)}: {error}") from None
    return {"simple": {name: value for name, value in fields.items() if name not in others}, "said": states}


def restore_user_fields(model: object, kept: Mapping[str, Plain]) -> None:
    """Restore what `save_user_fields` returned.

    Raises:
        DataError: If the model has no field of the name of an object.
    """
    vars(model).update(kept["simple"])
    for name, state in kept["said"].items():
        if name not in vars(model):
            raise DataError(f"the model: {name!r:.40} is no field of its own")
        restore_object(vars(model)[name], state)


def save_agents(model: PopulationModel) -> dict[str, Plain]:
    """Return row, class, fields and state of each agent that is more than its row, in Mesa's order.

    Fields that are numbers, texts or None are stored as they are; an agent with others has to have `snapshot` and
    `restore`. What a script keeps elsewhere is not stored.

    Raises:
        NotRestorableError: If an agent has other fields, but not these methods; or it is no `SocialAgent`.
    """
    made = model.made_by_class
    saved: list[list[Plain]] = []
    for kind, agents in made.items():
        for agent in agents:
            if kind is SocialAgent and len(vars(agent)) <= len(_AGENT_FIELDS):
                continue
            if not isinstance(agent, SocialAgent):
                raise NotRestorableError(f"{kind.__name__}: is no SocialAgent: no snapshot holds it")
            fields = {name: value for name, value in vars(agent).items() if name not in _AGENT_FIELDS}
            has_state = hasattr(agent, "snapshot") or not all(map(_is_simple, fields.values()))
            state = (None, take_snapshot(agent)) if has_state else (fields, None)
            saved.append([agent.row, _full_name(kind), *state])
    return {"classes": [_full_name(kind) for kind in made if kind is not SocialAgent], "agents": saved}


def restore_agents(model: PopulationModel, kept: Mapping[str, Plain]) -> None:
    """Restore what `save_agents` returned; an agent made in a round gets its class from another agent of it.

    Raises:
        NotRestorableError: If the model has no agent of the class of a saved one.
    """
    known: list[type[SocialAgent]] = [SocialAgent, *model.made_by_class]
    kinds = {_full_name(kind): kind for kind in known}
    model.have_moved([agent.row for agent in model.made_agents])
    agents = []
    for row, name, fields, state in kept["agents"]:
        if name not in kinds:
            raise NotRestorableError(f"agent {row} was a {name}, and no agent is one: make one before (prepare)")
        agent = model.agent_of_class(row, kinds[name])
        agent.__dict__.update(fields or {})
        if fields is None:
            restore_object(agent, state)
        agents.append(agent)
    model.put_in_order([kinds[name] for name in kept["classes"] if name in kinds], agents)


def save_clock(model: mesa.Model[Any, Any]) -> dict[str, Plain]:
    """Return steps, time, and the time of the next step.

    Raises:
        NotRestorableError: If something else is scheduled: a function, which is no data.
    """
    steps = model._default_schedule
    others = [event for event in model._event_list.peek_ahead(2) if event is not steps._current_event]
    if others or not steps.is_active or model._simulator is not None:
        raise NotRestorableError("the model: an event that is scheduled is held by no snapshot (schedule_event)")
    due = {"next": steps.next_scheduled_time, "done": steps.execution_count}
    return {"steps": model.steps, "time": model.time, "running": model.running} | due


def restore_clock(model: mesa.Model[Any, Any], kept: Mapping[str, Plain]) -> None:
    """Restore what `save_clock` returned; other scheduled events are dropped, since they have run."""
    model.steps, model.time, model.running = kept["steps"], kept["time"], kept["running"]
    model._event_list.clear()
    steps = model._default_schedule
    steps._execution_count = kept["done"]
    steps._schedule_next(kept["next"])


def save_generators(model: mesa.Model[Any, Any]) -> dict[str, Plain]:
    """Return the state of the model's two random generators; the platform uses neither.

    Raises:
        NotRestorableError: If they are not of Mesa's kinds.
    """
    bits = model.rng.bit_generator
    if type(model.random) is not random.Random or not isinstance(bits, np.random.PCG64):
        raise NotRestorableError("the model: random or rng is a generator of another kind, which no snapshot holds")
    version, words, normal = model.random.getstate()
    return {"version": version, "words": np.array(words, np.uint32), "normal": normal, "rng": plain(dict(bits.state))}


def restore_generators(model: mesa.Model[Any, Any], kept: Mapping[str, Plain]) -> None:
    """Restore what `save_generators` returned."""
    model.random.setstate((kept["version"], tuple(kept["words"].tolist()), kept["normal"]))
    model.rng.bit_generator.state = restored(kept["rng"])


def save_collected(collector: object) -> Plain:
    """Return what a DataCollector has collected, or the snapshot of another collector."""
    if not isinstance(collector, DataCollector):
        return take_snapshot(collector)
    by_type = {
        time: {_full_name(kind): rows for kind, rows in kinds.items()}
        for time, kinds in collector._agenttype_records.items()
    }
    return {name: plain(getattr(collector, name)) for name in _COLLECTED} | {"by_type": plain(by_type)}


def restore_collected(collector: object, kept: Any) -> None:
    """Restore what `save_collected` returned.

    Raises:
        DataError: If the collector collects something else.
    """
    differs = "datacollector: its model_reporters are not those of the run"
    if (collector is None) != (kept is None):
        raise DataError(f"{differs}: set the same collector in prepare")
    if not isinstance(collector, DataCollector):
        restore_object(collector, kept)
        return
    saved = {name: restored(kept[name]) for name in _COLLECTED}
    if list(saved["model_vars"]) != list(collector.model_vars):
        raise DataError(differs)
    if {name: list(table) for name, table in saved["tables"].items()} != {
        n: list(t) for n, t in collector.tables.items()
    }:
        raise DataError("datacollector: its tables are not those of the run")
    for name, value in saved.items():
        setattr(collector, name, value)
    kinds = {_full_name(kind): kind for kind in collector.agenttype_reporters}
    collector._agenttype_records = {
        time: {kinds[name]: rows for name, rows in named.items()} for time, named in restored(kept["by_type"]).items()
    }
