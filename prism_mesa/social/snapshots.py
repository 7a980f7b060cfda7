"""The parts of a model's snapshot outside its platform: Mesa's state, agent objects, and your own fields."""

import random
from collections.abc import Container, Mapping
from typing import Any, Final

import mesa
import numpy as np
from mesa import DataCollector

from prism_mesa.errors import DataError, NotRestorableError
from prism_mesa.snapshot import Plain, from_plain, restore_object, take_snapshot, to_plain
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.mesa_agents import PopulationModel

_AGENT_FIELDS: Final = frozenset({"row", "model", "unique_id", "pos"})
"""Fields that every agent has."""
_COLLECTED: Final = ("model_vars", "tables", "_collection_steps", "_agent_records", "_validated")


def _is_simple(value: object) -> bool:
    """Return whether a value can be stored unchanged: a number, a string, a boolean or None."""
    return value is None or type(value) in (bool, int, float, str)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def save_user_fields(model: object, prism_fields: Container[str]) -> dict[str, Plain]:
    """Return the fields that you added to a model: simple values unchanged, objects as snapshots.

    Raises:
        NotRestorableError: If an object has no `snapshot` and `restore`.
    """
    fields = {name: value for name, value in vars(model).items() if name not in prism_fields}
    other_fields = {name: value for name, value in fields.items() if not _is_simple(value)}
    try:
        states = {name: take_snapshot(value) for name, value in other_fields.items()}
    except NotRestorableError as error:
        raise NotRestorableError(f"the model's {', '.join(other_fields)}: {error}") from None
    return {"simple": {name: value for name, value in fields.items() if name not in other_fields}, "said": states}


def restore_user_fields(model: object, data: Mapping[str, Plain]) -> None:
    """Restore what `save_user_fields` returned; raises DataError if the model lacks the field of a saved object."""
    vars(model).update(data["simple"])
    for name, state in data["said"].items():
        if name not in vars(model):
            raise DataError(f"the model has no field {name!r:.40}")
        restore_object(vars(model)[name], state)


def save_agents(model: PopulationModel) -> dict[str, Plain]:
    """Return row, class, fields and state of each agent that has more than its row, in Mesa's order.

    Fields that are numbers, strings, booleans or None are stored unchanged. An agent with any other field needs
    `snapshot` and `restore`. State that a script keeps elsewhere is not stored.

    Raises:
        NotRestorableError: If an agent lacks these methods, or is not a `SocialAgent`.
    """
    agents_by_class = model.agents_by_class
    records: list[list[Plain]] = []
    for kind, agents in agents_by_class.items():
        for agent in agents:
            if kind is SocialAgent and len(vars(agent)) <= len(_AGENT_FIELDS):
                continue
            if not isinstance(agent, SocialAgent):
                raise NotRestorableError(f"{kind.__name__} is not a SocialAgent: a snapshot cannot store it")
            fields = {name: value for name, value in vars(agent).items() if name not in _AGENT_FIELDS}
            has_state = hasattr(agent, "snapshot") or not all(map(_is_simple, fields.values()))
            state = (None, take_snapshot(agent)) if has_state else (fields, None)
            records.append([agent.row, _full_name(kind), *state])
    return {"classes": [_full_name(kind) for kind in agents_by_class if kind is not SocialAgent], "agents": records}


def restore_agents(model: PopulationModel, data: Mapping[str, Plain]) -> None:
    """Restore what `save_agents` returned. The model must have at least one agent of each saved class.

    Raises:
        NotRestorableError: If the model has no agent of a saved agent's class.
    """
    classes: list[type[SocialAgent]] = [SocialAgent, *model.agents_by_class]
    kinds = {_full_name(kind): kind for kind in classes}
    model.update_presence([agent.row for agent in model.existing_agents])
    agents = []
    for row, name, fields, state in data["agents"]:
        if name not in kinds:
            raise NotRestorableError(f"agent {row} was a {name}, and the model has no such agent: make one in prepare")
        agent = model.agent_of_class(row, kinds[name])
        agent.__dict__.update(fields or {})
        if fields is None:
            restore_object(agent, state)
        agents.append(agent)
    model.sort_agents([kinds[name] for name in data["classes"] if name in kinds], agents)


def save_clock(model: mesa.Model[Any, Any]) -> dict[str, Plain]:
    """Return steps, time, and the time of the next step.

    Raises:
        NotRestorableError: If any other event is scheduled, because its function is not plain data.
    """
    steps = model._default_schedule
    other_events = [event for event in model._event_list.peek_ahead(2) if event is not steps._current_event]
    if other_events or not steps.is_active or model._simulator is not None:
        raise NotRestorableError("the model: a snapshot cannot store scheduled events (schedule_event)")
    step_times = {"next": steps.next_scheduled_time, "done": steps.execution_count}
    return {"steps": model.steps, "time": model.time, "running": model.running} | step_times


def restore_clock(model: mesa.Model[Any, Any], data: Mapping[str, Plain]) -> None:
    """Restore what `save_clock` returned; other scheduled events are dropped, because they have already run."""
    model.steps, model.time, model.running = data["steps"], data["time"], data["running"]
    model._event_list.clear()
    steps = model._default_schedule
    steps._execution_count = data["done"]
    steps._schedule_next(data["next"])


def save_generators(model: mesa.Model[Any, Any]) -> dict[str, Plain]:
    """Return the state of the model's two random generators; the platform uses neither.

    Raises:
        NotRestorableError: If a generator is not of the kind that Mesa makes.
    """
    bits = model.rng.bit_generator
    if type(model.random) is not random.Random or not isinstance(bits, np.random.PCG64):
        raise NotRestorableError("the model: a snapshot cannot store random or rng: a generator of another kind")
    version, words, normal = model.random.getstate()
    rng = to_plain(dict(bits.state))
    return {"version": version, "words": np.array(words, np.uint32), "normal": normal, "rng": rng}


def restore_generators(model: mesa.Model[Any, Any], data: Mapping[str, Plain]) -> None:
    """Restore what `save_generators` returned."""
    model.random.setstate((data["version"], tuple(data["words"].tolist()), data["normal"]))
    model.rng.bit_generator.state = from_plain(data["rng"])


def save_collected(collector: object) -> Plain:
    """Return what a DataCollector has collected, or the snapshot of another collector."""
    if not isinstance(collector, DataCollector):
        return take_snapshot(collector)
    by_type = {
        time: {_full_name(kind): rows for kind, rows in kinds.items()}
        for time, kinds in collector._agenttype_records.items()
    }
    return {name: to_plain(getattr(collector, name)) for name in _COLLECTED} | {"by_type": to_plain(by_type)}


def restore_collected(collector: object, data: Any) -> None:
    """Restore what `save_collected` returned.

    Raises:
        DataError: If the reporters or tables of the collector differ from the saved ones.
    """
    message = "datacollector: its model_reporters differ from the run's"
    if (collector is None) != (data is None):
        raise DataError(f"{message}: set the same collector in prepare")
    if not isinstance(collector, DataCollector):
        restore_object(collector, data)
        return
    saved = {name: from_plain(data[name]) for name in _COLLECTED}
    if list(saved["model_vars"]) != list(collector.model_vars):
        raise DataError(message)
    if {n: list(t) for n, t in saved["tables"].items()} != {n: list(t) for n, t in collector.tables.items()}:
        raise DataError("datacollector: its tables differ from the run's")
    for name, value in saved.items():
        setattr(collector, name, value)
    kinds = {_full_name(kind): kind for kind in collector.agenttype_reporters}
    collector._agenttype_records = {
        time: {kinds[name]: rows for name, rows in rows_by_class.items()}
        for time, rows_by_class in from_plain(data["by_type"]).items()
    }
