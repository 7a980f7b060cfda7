"""What a snapshot of a model holds beside its platform: Mesa's state, agents as objects, and fields of your own."""

import random
from collections.abc import Container, Mapping
from typing import Any, Final

import mesa
import numpy as np
from mesa import DataCollector

from prism_mesa.errors import DataError, NotRestorableError
from prism_mesa.snapshot import Plain, bring_back, plain, restored, state_of
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.mesa_agents import PopulationModel


def is_simple(value: object) -> bool:
    """Return whether a value is held as it is: a number, a text, a truth value, None. Shared, it cannot change."""
    return value is None or type(value) in (bool, int, float, str)


def own_fields(thing: object, known: Container[str]) -> dict[str, Any]:
    """Return the fields of an object but for those that are known."""
    return {name: value for name, value in vars(thing).items() if name not in known}


def fields_of_model(model: object, known: Container[str]) -> dict[str, Plain]:
    """Return what users gave a model: simple fields, and what other ones say themselves of their state.

    Raises:
        NotRestorableError: If another one has no `snapshot` and `restore`.
    """
    own = own_fields(model, known)
    try:
        said = {name: state_of(value) for name, value in own.items() if not is_simple(value)}
    except NotRestorableError as error:
        names = ", ".join(name for name, value in own.items() if not is_simple(value))
        raise NotRestorableError(f"the model's {names}: {error}") from None
    return {"simple": {name: value for name, value in own.items() if is_simple(value)}, "said": said}


def set_fields_of_model(model: object, kept: Mapping[str, Plain]) -> None:
    """Bring back what `fields_of_model` returned.

    Raises:
        DataError: If a field that said something is not there.
    """
    vars(model).update(kept["simple"])
    for name, state in kept["said"].items():
        if name not in vars(model):
            raise DataError(f"the model: {name!r:.40} is no field of its own")
        bring_back(vars(model)[name], state)


_OF_ALL: Final = frozenset({"row", "model", "unique_id", "pos"})
"""Fields that every agent has."""


def agents_of(model: PopulationModel) -> dict[str, Plain]:
    """Return row, class, fields and state of each agent that is more than its row, in Mesa's order.

    Fields that are numbers, texts or None are held as they are; an agent with others has to say itself what its state
    is. What a script keeps anywhere else is not known.

    Raises:
        NotRestorableError: If an agent has other fields, but no `snapshot` and `restore`; or is none of the platform.
    """
    made = model.made_by_class
    found = [
        [_row_of(agent), _name_of(kind), *_state_of(agent)]
        for kind, agents in made.items()
        for agent in agents
        if kind is not SocialAgent or len(vars(agent)) > len(_OF_ALL)
    ]
    return {"classes": [_name_of(kind) for kind in made if kind is not SocialAgent], "agents": found}


def set_agents(model: PopulationModel, kept: Mapping[str, Plain]) -> None:
    """Bring back what `agents_of` returned; who came in a round is made of a class that another agent has.

    Raises:
        NotRestorableError: If an agent was of a class that none has here.
    """
    known: list[type[SocialAgent]] = [SocialAgent, *model.made_by_class]
    kinds = {_name_of(kind): kind for kind in known}
    model.have_moved([agent.row for agent in model.made_agents])
    agents = []
    for row, name, fields, state in kept["agents"]:
        agent = model.agent_of_class(row, _known(kinds, row, name))
        agent.__dict__.update(fields or {})
        if fields is None:
            bring_back(agent, state)
        agents.append(agent)
    model.put_in_order([kinds[name] for name in kept["classes"] if name in kinds], agents)


def _row_of(agent: mesa.Agent[Any]) -> int:
    if not isinstance(agent, SocialAgent):
        raise NotRestorableError(f"{type(agent).__name__}: is no SocialAgent: no snapshot holds it")
    return agent.row


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _state_of(agent: mesa.Agent[Any]) -> tuple[Plain, Plain]:
    """Return an agent's fields, or else what it says itself."""
    own = own_fields(agent, _OF_ALL)
    if hasattr(agent, "snapshot") or not all(map(is_simple, own.values())):
        return None, state_of(agent)
    return own, None


def _known(kinds: Mapping[str, type[SocialAgent]], row: int, name: str) -> type[SocialAgent]:
    if name not in kinds:
        raise NotRestorableError(f"agent {row} was a {name}, and no agent is one: make one before (prepare)")
    return kinds[name]


_COLLECTED: Final = ("model_vars", "tables", "_collection_steps", "_agent_records", "_validated")


def clock_of(model: mesa.Model[Any, Any]) -> dict[str, Plain]:
    """Return steps, time, and when the next step is due.

    Raises:
        NotRestorableError: If something else is scheduled: a function, which is no data.
    """
    steps = model._default_schedule
    others = [event for event in model._event_list.peek_ahead(2) if event is not steps._current_event]
    if others or not steps.is_active or model._simulator is not None:
        raise NotRestorableError("the model: an event that is scheduled is held by no snapshot (schedule_event)")
    return {
        "steps": model.steps,
        "time": model.time,
        "running": model.running,
        "next": steps.next_scheduled_time,
        "done": steps.execution_count,
    }


def set_clock(model: mesa.Model[Any, Any], kept: Mapping[str, Plain]) -> None:
    """Bring back what `clock_of` returned; what else is scheduled is dropped: it has been done."""
    model.steps, model.time, model.running = kept["steps"], kept["time"], kept["running"]
    model._event_list.clear()
    steps = model._default_schedule
    steps._execution_count = kept["done"]
    steps._schedule_next(kept["next"])


def draws_of(model: mesa.Model[Any, Any]) -> dict[str, Plain]:
    """Return where the model's two sequences of random numbers stand; the platform draws none of them.

    Raises:
        NotRestorableError: If they are not of Mesa's kinds.
    """
    bits = model.rng.bit_generator
    if type(model.random) is not random.Random or not isinstance(bits, np.random.PCG64):
        raise NotRestorableError("the model: random or rng is a generator of another kind, which no snapshot holds")
    version, words, normal = model.random.getstate()
    return {"version": version, "words": np.array(words, np.uint32), "normal": normal, "rng": plain(dict(bits.state))}


def set_draws(model: mesa.Model[Any, Any], kept: Mapping[str, Plain]) -> None:
    """Bring back what `draws_of` returned."""
    model.random.setstate((kept["version"], tuple(kept["words"].tolist()), kept["normal"]))
    model.rng.bit_generator.state = restored(kept["rng"])


def collected(collector: object) -> Plain:
    """Return what a DataCollector has collected; another kind of collector returns its own state."""
    if not isinstance(collector, DataCollector):
        return state_of(collector)
    by_type = {
        time: {_full_name(kind): rows for kind, rows in kinds.items()}
        for time, kinds in collector._agenttype_records.items()
    }
    return {name: plain(getattr(collector, name)) for name in _COLLECTED} | {"by_type": plain(by_type)}


def set_collected(collector: object, kept: Any) -> None:
    """Bring back what `collected` returned.

    Raises:
        DataError: If the collector collects something else.
    """
    if (collector is None) != (kept is None):
        raise DataError(
            "datacollector: its model_reporters are not those of the run: set the same collector in prepare"
        )
    if not isinstance(collector, DataCollector):
        bring_back(collector, kept)
        return
    found = {name: restored(kept[name]) for name in _COLLECTED}
    if list(found["model_vars"]) != list(collector.model_vars):
        raise DataError("datacollector: its model_reporters are not those of the run")
    if {name: list(own) for name, own in found["tables"].items()} != {n: list(t) for n, t in collector.tables.items()}:
        raise DataError("datacollector: its tables are not those of the run")
    kinds = {_full_name(kind): kind for kind in collector.agenttype_reporters}
    by_type = restored(kept["by_type"])
    for name, value in found.items():
        setattr(collector, name, value)
    collector._agenttype_records = {
        time: {kinds[name]: rows for name, rows in named.items()} for time, named in by_type.items()
    }


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
