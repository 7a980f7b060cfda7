"""The base class of PRISM's Mesa models, which collect data in each round and stop when `running` is False."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, cast

import mesa
from mesa import DataCollector

from prism_mesa.errors import ConfigError
from prism_mesa.params import short_repr

type Reporters = Mapping[str, Any] | None
"""Reporters by name, in the format of `mesa.DataCollector`."""


class PartAttribute[T]:
    """A read-only attribute of a model whose value is an attribute of a part of the model, such as its platform."""

    part = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> T:
        return cast(T, self if model is None else getattr(getattr(model, self.part), self._name))

    def __set__(self, model: Any, value: object) -> None:
        raise AttributeError(f"{type(model).__name__}.{self._name} is read-only; set the attribute of its {self.part}")


class RoundCollector(DataCollector):
    """A DataCollector that collects in each round instead of in each step."""

    def collect(self, model: mesa.Model[Any, Any]) -> None:
        """Do nothing, because each round calls `collect_round`."""

    def collect_round(self, model: mesa.Model[Any, Any]) -> None:
        """Add a row for the round."""
        super().collect(model)


class RoundModel(mesa.Model):
    """A Mesa model whose step runs rounds.

    Attributes:
        datacollector: PRISM's collector, or your own. Your own collects at the end of a step unless it already has.
        prism_datacollector: PRISM's collector.
    """

    params: Any
    running: bool
    prism_datacollector: RoundCollector
    _default_schedule: Any
    """Mesa's schedule of steps."""

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return int(self.params.seed)

    @property
    def rounds_done(self) -> int:
        """Number of rounds that have started."""
        raise NotImplementedError

    def warn(self, text: str) -> None:
        """Issue a warning, and keep it in `notes`."""
        raise NotImplementedError

    @property
    def user_datacollector(self) -> Any:
        """The collector that the user has set in place of PRISM's, or None."""
        return None if self.datacollector is self.prism_datacollector else self.datacollector

    def _start_collecting(self, collector: RoundCollector, **reporters_by_kind: Reporters) -> None:
        """Add reporters to PRISM's collector, and set it as `datacollector` unless a subclass has set another one."""
        for kind, reporters in reporters_by_kind.items():
            label, existing = f"{type(self).__name__}: {kind}", getattr(collector, kind)
            if reporters is not None and not isinstance(reporters, Mapping):
                example = "{name: reporter}, which mesa.batch_run takes in a list"
                raise ConfigError(f"{label}: give reporters by name, {example}, not {short_repr(reporters)}")
            for name, reporter in (reporters or {}).items():
                if name in existing:
                    raise ConfigError(f"{label}: {name!r} is already collected; choose another name")
                if kind == "model_reporters":
                    collector._new_model_reporter(name, reporter)
                else:  # attrgetter can be pickled, Mesa's closure cannot
                    collector._new_agent_reporter(name, attrgetter(reporter) if isinstance(reporter, str) else reporter)
        self.prism_datacollector = collector
        if not hasattr(self, "datacollector"):
            self.datacollector = collector

    def _do_step(self) -> None:
        """Do a step. If it fails, schedule it again, unlike Mesa."""
        rounds_before = self.rounds_done
        try:
            super()._do_step()
            self._collect_once()
        except BaseException:
            self._set_clock(self.steps - (self.rounds_done == rounds_before))
            raise
        if not self.rounds_done:
            self.running = self.running and self.steps < self.params.rounds
            if self.steps == 1:
                self.warn(f"{type(self).__name__}.step has run no round: call super().step() in it")

    def _collect_once(self) -> None:
        """Let the user's DataCollector collect, unless it has already collected in this step."""
        collector, now = self.user_datacollector, self.time
        if isinstance(collector, DataCollector) and not any(
            now in rows
            for rows in (collector._collection_steps[-1:], collector._agent_records, collector._agenttype_records)
        ):
            collector.collect(self)

    def _set_clock(self, steps: int) -> None:
        self.steps, self.time = steps, float(steps)
        self._default_schedule.pause()
        self._default_schedule.resume()

    def _advance_time(self, until: float) -> None:
        """Advance to a time, step by step. If `running` becomes False before the last round, stop."""
        was_running, is_stopped = self.running, False
        while not is_stopped:
            super()._advance_time(min(until, self.time + 1))
            is_stopped = was_running and not self.running and self.rounds_done < self.params.rounds
            is_stopped |= self.time >= until
