"""What Mesa keeps of a model: its clock, its random numbers, and what its DataCollector has collected."""

import random
from collections.abc import Mapping
from typing import Any, Final

import mesa
import numpy as np
from mesa import DataCollector

from prism_mesa.errors import DataError, NotRestorableError
from prism_mesa.snapshot import Plain, plain, restore_object, restored, state_of

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
        restore_object(collector, kept)
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
