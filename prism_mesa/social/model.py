"""`SocialModel`: the simulated platform as a Mesa model. Its `step()` runs a round, and `platform` holds its state."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import mesa

from prism_mesa.domain import SHARE, color_order
from prism_mesa.errors import BadInputError, DataError, RunError, one_line
from prism_mesa.markup import bar_html, card_html, facts_html, html_or_repr, note_html
from prism_mesa.params import FROM_PARAMS, model_params
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.round_model import Reporters, RoundCollector
from prism_mesa.snapshot import Plain, from_plain, to_plain
from prism_mesa.social import snapshots
from prism_mesa.social.chart_checks import GuardWarnings, require_agent_fields
from prism_mesa.social.mesa_agents import PopulationModel
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import RoundRecorder
from prism_mesa.social.round.choices import shortfall
from prism_mesa.social.round.collect import ROUND_FIELDS
from prism_mesa.social.round.run_round import run_round
from prism_mesa.social.start import change_chart, start_platform, warn
from prism_mesa.social.state.outcomes import OUTCOME_FIELDS
from prism_mesa.social.world.build import KeptWorld
from prism_mesa.statechart import Statechart

_MIN_SHARE: Final = 0.005
"""The smallest share of a state that a notebook shows."""
_TOTALS: Final = ("posts", "impressions", "likes", "replies", "reshares", "open")


class SocialModel(PopulationModel):
    """A social platform whose agents are statecharts; `social.round.run_round` lists the steps of a round.

    Args:
        config: All parameters, or nested values for them; by default those of `SocialParams`.
        scenario: A Mesa scenario; its attributes are parameters.
        rng: The seed, a whole number or its digits as a string; None draws a seed and stores it in `seed`. The default
            is 42, so identical calls make identical runs.
        chart: Your own chart, as an object; to use a chart from a module, set `statechart.chart`.
        recorder: Receives the records; None keeps only the DataCollector's.
        reasoner: The reasoner that answers open choices; None makes the configured reasoner.
        world: A saved world from equal parameters; None draws the world.
        agent_reporters: Further agent reporters for the DataCollector, by name; see docs/models.md.
        model_reporters: Further model reporters.
        params: Parameters by name: ``feed_mode="random"``, ``agents_n=100`` (dots written as _).

    Attributes:
        prism_datacollector: PRISM's DataCollector; `datacollector` is the same unless you set your own.
            ``mesa.batch_run`` returns the last round.

            Per round: `online`, `posts`, `impressions`, `likes`, `replies`, `reshares`, `open`, `fallback`,
            `share_<state>` (share of agent-ticks in a state), and `present` (agents on the platform when the round
            opened).

            Over all rounds so far: `total_posts`, `total_impressions`, `total_likes`, `total_replies`,
            `total_reshares`, `total_open`, `total_fallback`, `cascades` (number of cascades), `cascade_mean_size`,
            `cascade_max_size`, `cascade_never_reshared` (share of cascades), and `attention_gini` (Gini coefficient of
            the impressions of each agent's posts; see `outcomes.Outcomes`).

            The table `ticks` has the state counts at the end of each tick.

    Warns:
        NotedWarning: About input that was left out or may have been misread, values above their maximum, and keys
            without effect. `notes` has the same texts.

    Raises:
        ConfigError: If a parameter is unknown or out of range.
        LLMFailureException: From `step`, if the reasoner's first 20 answers are all useless (see `Reasoner`).
        RunError: From every later call, if an interrupt or an error broke off a round.
    """

    def __init__(
        self,
        config: SocialParams | Mapping[str, Any] | None = None,
        *,
        scenario: mesa.experimental.scenarios.Scenario | None = None,
        rng: Any = FROM_PARAMS,
        chart: Statechart | None = None,
        recorder: RoundRecorder | None = None,
        reasoner: AnyReasoner | None = None,
        world: KeptWorld | None = None,
        agent_reporters: Reporters = None,
        model_reporters: Reporters = None,
        **params: Any,
    ) -> None:
        old_fields = vars(self).keys() - {"datacollector"}  # set by a subclass
        merged = model_params(SocialParams, config, scenario, rng, params, "SocialModel")
        super().__init__(rng=merged.seed)
        if scenario is not None:
            self.scenario = scenario
        self.platform = start_platform(merged, chart=chart, reasoner=reasoner, recorder=recorder, world=world)
        self.guard_warnings = GuardWarnings(self.warn)
        self._warned_of_shortfall = False
        self._broken_off = ""
        self.round_row: dict[str, float] = {}
        collector = _make_datacollector([state.value for state in self.platform.states])
        self._start_collecting(collector, agent_reporters=agent_reporters, model_reporters=model_reporters)
        self._prism_fields = (vars(self).keys() | {"datacollector", "_prism_fields"}) - old_fields

    @property
    def chart(self) -> Statechart:
        """The chart of all agents but accounts; you can set another chart until agents have moved.

        The model copies the chart with its own settings (`statechart.oracle_enabled`, `statechart.strict`). Agents in
        the initial state of the old chart move to the initial state of the new chart.

        Raises:
            ChartError: On setting, if agents have moved, or the chart's check finds an error.
            ConfigError: On setting, if a distilled model knows none of the chart's open choices.
        """
        return self.platform.chart

    @chart.setter
    def chart(self, chart: Statechart) -> None:
        change_chart(self.platform, chart)

    @property
    def recorder(self) -> RoundRecorder | None:
        """The recorder; you can set another recorder at any time."""
        return self.platform.recorder

    @recorder.setter
    def recorder(self, recorder: RoundRecorder | None) -> None:
        self.platform.recorder = recorder

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.platform.status_text}>"

    @html_or_repr
    def _repr_html_(self) -> str:
        params, row, totals = self.params, self.round_row, self.totals
        states = color_order(self.platform.states)
        shares = [(state.value, state.color, row.get(SHARE + state.value, 0.0)) for state in states]
        active = ", ".join(f"{name} {share:.1%}" for name, _, share in shares if share >= _MIN_SHARE)
        last = (bar_html(shares), note_html(f"agent-ticks of round {self.round}: {active}")) if row else ()
        facts = {
            "feed": params.feed.ranking,
            "follows": f"{self.network.n_edges:,}, {params.network.kind}, {params.network.dynamics}",
            "decided by": self.reasoner.label,
            "so far": ", ".join(f"{totals[name]:,} {name}" for name in _TOTALS) + " choices" if row else "no round yet",
        }
        remark = f"{int(self.population.present.sum()):,} agents, seed {params.seed}"
        return card_html(
            "model", f"{self.round + 1} of {params.rounds} rounds", *last, facts_html(facts.items()), remark=remark
        )

    def step(self) -> None:
        """Run one round.

        Raises:
            ChartError: When the first round opens, if a guard reads a field that no agent has.
        """
        try:
            self._require_unbroken()
            if self.round < 0:
                self.require_agent_fields()
            run_round(self.platform, self._collect)
        except BaseException as error:
            if self.round >= 0:  # a round that has opened has had effects
                self.running, self._broken_off = False, self._broken_off or type(error).__name__
            raise
        self.running = self.running and self.rounds_done < self.params.rounds
        self.guard_warnings.warn_new(self.platform.charts)
        if not self.running:
            self._warn_of_shortfall()

    @property
    def rounds_done(self) -> int:
        """Number of rounds so far."""
        return self.round + 1

    def warn(self, text: str) -> None:
        """Warn, and add the text to `notes`."""
        self.platform.notes += (text,)
        warn(text)

    def _require_unbroken(self) -> None:
        if self._broken_off:
            reason = f"round {self.round} was broken off ({self._broken_off})"
            raise RunError(f"{type(self).__name__}: {reason}, and part of it has taken effect: make another model")

    def _collect(self, row: dict[str, float]) -> None:
        self.round_row = row
        self.prism_datacollector.collect_round(self)
        counts, ticks = self.platform.tick_counts, self.prism_datacollector.tables["ticks"]
        ticks["round"] += [self.round] * len(counts)
        ticks["tick"] += range(1, len(counts) + 1)
        for state, column in zip(self.platform.states, counts.T.tolist(), strict=True):  # faster than add_table_row
            ticks[state.value] += column

    def require_agent_fields(self) -> None:
        """Raise ChartError if a guard reads a field that no agent has. Make your agents first."""
        declared = self.platform.attributes.schema.fields
        for chart in self.platform.charts:
            require_agent_fields(chart, self.existing_agents, declared, has_scripts=self.has_scripted_classes)

    def _advance_time(self, until: float) -> None:
        """Advance to a time, then warn about guards that raised and how often."""
        with self.guard_warnings.deferred(self.platform.charts):
            super()._advance_time(until)

    def run_model(self) -> None:
        """Run all remaining rounds, then warn about guards that raised and how often."""
        self._require_unbroken()
        with self.guard_warnings.deferred(self.platform.charts):
            super().run_model()

    def snapshot(self) -> dict[str, Plain]:
        """Return everything that the rounds so far have changed as plain data, to continue in another process.

        Call this between two rounds, and `restore` the snapshot in a new model with equal parameters. The snapshot
        shares its arrays with the model, so it is valid until the next round. It includes the fields that you added to
        the model: numbers and strings, and objects that have `snapshot` and `restore`. It does not include what guards,
        actions and scripts store elsewhere.

        Raises:
            NotRestorableError: If agents, the reasoner, your objects or Mesa's scheduled events have state that a
                snapshot cannot store.
        """
        self._require_unbroken()
        return {
            "platform": self.platform.snapshot(),
            "agents": snapshots.save_agents(self),
            "clock": snapshots.save_clock(self),
            "draws": snapshots.save_generators(self),
            "collected": snapshots.save_collected(self.prism_datacollector),
            "theirs": snapshots.save_collected(self.user_datacollector),
            "round_row": to_plain(self.round_row),
            "warned": {"shortfall": self._warned_of_shortfall, "guards": sorted(self.guard_warnings.warned)},
            "fields": snapshots.save_user_fields(self, self._prism_fields),
        }

    def restore(self, data: Mapping[str, Plain]) -> None:
        """Restore a `snapshot` of a model with the same parameters, chart, reasoner and agents.

        Raises:
            DataError: If the snapshot is damaged or is not a snapshot; then make another model.
            NotRestorableError: If agents, or the reasoner, cannot restore their state.
        """
        if self.round >= 0:
            raise DataError("SocialModel.restore: the model has run already; make another one")
        try:
            self.platform.restore(data["platform"])
            snapshots.restore_agents(self, data["agents"])
            snapshots.restore_user_fields(self, data["fields"])
            snapshots.restore_clock(self, data["clock"])
            snapshots.restore_generators(self, data["draws"])
            snapshots.restore_collected(self.prism_datacollector, data["collected"])
            snapshots.restore_collected(self.user_datacollector, data.get("theirs"))
            self.round_row = from_plain(data["round_row"])
            self._warned_of_shortfall = data["warned"]["shortfall"]
            self.guard_warnings.warned = set(data["warned"]["guards"])
        except BadInputError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise DataError(f"the snapshot is damaged ({type(error).__name__}: {error})") from error

    def close(self) -> None:
        """Close the threads and connections of the reasoner and the writer; you can call this twice.

        Warns about too many fallbacks, unless the model has warned already.
        """
        for part in (self.reasoner, self.writer):
            if part is not None:
                part.close()
        self.guard_warnings.warn_new(self.platform.charts)
        self._warn_of_shortfall()

    def _warn_of_shortfall(self) -> None:
        """Warn once if an LLM failed more often than `reasoner.max_fallback_share` allows."""
        text = "" if self._warned_of_shortfall else shortfall(self.platform)
        if text:
            self._warned_of_shortfall = True
            self.warn(text)


def _make_datacollector(names: list[str]) -> RoundCollector:
    """Return PRISM's DataCollector: counts and shares per round, outcomes so far, state counts per tick."""
    fields = (*ROUND_FIELDS, *(SHARE + name for name in names), "present", *OUTCOME_FIELDS)
    reporters = {name: partial(_round_value, name=name) for name in fields}
    return RoundCollector(model_reporters=reporters, tables={"ticks": ["round", "tick", *names]})


def _round_value(model: SocialModel, name: str) -> float:
    return model.round_row[name]
