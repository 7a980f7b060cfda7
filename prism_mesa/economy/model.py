"""`EconomyModel`: a Mesa model of nations whose policies change their economies.

One `step()` is a quarter:

1. observe: each nation sees its own indicators exactly, and those of other nations with an error.
2. decide: all nations decide at once; an LLM's answer is read into a `Policy`.
3. validate: each policy is checked against the world; a rejected policy is recorded but has no effect.
4. apply: all instruments are set at once.
5. advance: the economies advance by a quarter.
6. collect: the DataCollector and the recorder receive the quarter's rows.

A step computes a new `EconomyState`, writes its rows, and then makes it the model's state. If anything fails, neither
the model nor Mesa's clock changes, and you can call `step()` again.
"""

import asyncio
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import mesa
import numpy as np

from prism_mesa.arrays import Floats
from prism_mesa.economy.agent import EconLLMAgent, Proposal, RuleAgent, propose_by_rule
from prism_mesa.economy.collect import QuarterRecorder, make_datacollector, quarter_rows
from prism_mesa.economy.llm_agent import ReasonedAction, decide_all
from prism_mesa.economy.macro import Macro
from prism_mesa.economy.nations import default_nation_notes
from prism_mesa.economy.observation import NationState, SimulationState, observe_nations
from prism_mesa.economy.params import DeciderFacts, EconomyParams, keys_without_effect, quarter_name
from prism_mesa.economy.policy import Policy, with_policies
from prism_mesa.economy.reading import PolicyDecision
from prism_mesa.economy.rules import RuleContext
from prism_mesa.economy.state import EconomyState, NationDecision
from prism_mesa.economy.validator import Judgement, judge
from prism_mesa.economy.world import Shocks, World
from prism_mesa.errors import ConfigError, NotedWarning, format_count, one_line
from prism_mesa.llm import LLMClient, make_llm_client
from prism_mesa.llm.clients.event_loop import run_now
from prism_mesa.llm.factory import answer_store
from prism_mesa.params import FROM_PARAMS, model_params
from prism_mesa.round_model import PartAttribute, Reporters, RoundModel
from prism_mesa.streams import Streams


class _Read[T](PartAttribute[T]):
    """A read-only field of the state."""

    part = "state"


class EconomyModel(RoundModel):
    """A Mesa model of nations and their economies; the module's docstring lists the stages of a quarter.

    Args:
        config: All parameters, or nested values for some; `EconomyParams` has the defaults.
        scenario: A Mesa scenario; its attributes are parameters.
        rng: The seed (Mesa's name for it), as in `SocialModel`. Overrides `seed`.
        recorder: Receives the records; None keeps only the rows of the DataCollector.
        llm: The LLM for `economy.policy=llm`: a client, or a function of the prompt. By default the LLM that the
            parameters name, or Taylor's rule if there is none.
        agent_reporters: As for `SocialModel`; so is `model_reporters`.
        params: Parameters by name: ``economy_policy="taylor"`` (dots written as _).

    Attributes:
        state: All that a step changes; each step sets a new value.
        nations: The agents, in the order of their rows. A removed nation no longer decides; its economy and its
            policies remain.
        world: The state of all economies.
        indicators: The indicators of all nations without error, each of shape (n,).
        decisions: The decisions of the last quarter.
        llm: The LLM, or None.
        note: Why there is no LLM, or not the preferred LLM; otherwise empty.
        notes: `note`, keys without effect, nations with default values, and other warnings.
        totals, read_by: Decisions so far by outcome (see `tables.OUTCOMES`), and by the source of their measures.
        prism_datacollector: As for `SocialModel`. It has each nation's indicators by quarter
            (`observation.INDICATORS`), and for the world, counts of decisions by outcome and output-weighted means of
            output gap, inflation and unemployment.

    Warns:
        NotedWarning: With the texts of `notes`.

    Raises:
        ConfigError: If a parameter is unknown or out of range, or the named LLM is missing.
    """

    indicators = _Read[Mapping[str, Floats]]()
    decisions = _Read[Sequence[NationDecision]]()
    totals = _Read[Counter[str]]()
    read_by = _Read[Counter[str]]()

    def __init__(
        self,
        config: EconomyParams | Mapping[str, Any] | None = None,
        *,
        scenario: mesa.experimental.scenarios.Scenario | None = None,
        rng: Any = FROM_PARAMS,
        recorder: QuarterRecorder | None = None,
        llm: Any = None,
        agent_reporters: Reporters = None,
        model_reporters: Reporters = None,
        **params: Any,
    ) -> None:
        self.params: EconomyParams = model_params(EconomyParams, config, scenario, rng, params, "EconomyModel")
        super().__init__(rng=self.params.seed)
        if scenario is not None:
            self.scenario = scenario
        settings = self.params.economy
        self.streams = Streams(self.params.seed)
        self.macro = Macro(settings.nations, settings.macro)
        self.state = EconomyState.first(self.macro)
        self.llm, self.note = self._choose_llm(llm)
        self._all_nations = [self._make_nation(row, name) for row, name in enumerate(self.macro.names)]
        self.recorder = recorder
        self._start_collecting(make_datacollector(), agent_reporters=agent_reporters, model_reporters=model_reporters)
        kind = "" if self.llm is None else self.llm.kind
        facts = DeciderFacts(self.params, kind, llm is not None, isinstance(llm, LLMClient))
        self.notes = (*default_nation_notes(settings.nations), *keys_without_effect(facts))
        if self.notes:
            warnings.warn(f"EconomyModel: {'; '.join(self.notes)}", NotedWarning, stacklevel=2)
        self.notes += (self.note,) if self.note else ()

    def _choose_llm(self, llm: Any) -> tuple[LLMClient | None, str]:
        """Return the LLM if a nation uses one, and a note if it is missing or replaced."""
        reasoner = self.params.reasoner
        if "llm" not in self.params.economy.policies:
            if llm is not None:
                raise ConfigError("EconomyModel: llm: no nation uses it (set economy.policy=llm, or a nation's policy)")
            return None, ""
        if llm is not None:
            if not isinstance(llm, LLMClient):
                llm = LLMClient(llm, reasoner, store=answer_store(reasoner))
            llm.begin()
            return llm, ""
        client, note = make_llm_client(reasoner)
        return client, note if client is not None else f"there is no LLM ({note}): Taylor's rule decides instead"

    def _make_nation(self, row: int, name: str) -> EconLLMAgent | RuleAgent:
        settings = self.params.economy
        policy = settings.policies[row]
        if policy != "llm" or self.llm is None:
            return RuleAgent(self, name, "taylor" if policy == "llm" else policy, row=row)
        return EconLLMAgent(
            self,
            name,
            self.llm,
            domain=settings.domain,
            prompt_style=settings.prompt_style or ("examples" if self.llm.kind == "embedded" else "chain_of_thought"),
            row=row,
            memory=settings.memory,
            thinking=self.params.deliberation if settings.deliberate else None,
            judge=partial(self._judge, row=row),
            typed_measures=settings.typed_measures,
        )

    @one_line
    def __repr__(self) -> str:
        progress = f"quarter {self.world.quarter} of {self.params.rounds} ({self.quarter})"
        nations = format_count(len(self.nations), "nation")
        return f"<{type(self).__name__}: {nations}, {progress}, seed {self.params.seed}, decided by {self.label}>"

    @property
    def nations(self) -> list[EconLLMAgent | RuleAgent]:
        """The agents that have not been removed, in the order of their rows."""
        agents = self.agents
        return [nation for nation in self._all_nations if nation in agents]

    @property
    def label(self) -> str:
        """The LLM and the rules that decide, for summaries."""
        names: dict[str, list[str]] = {}
        for nation in self.nations:
            names.setdefault(nation.decided_by, []).append(nation.name)
        if len(names) == 1:
            return next(iter(names))
        return "; ".join(f"{decider} for {', '.join(nations)}" for decider, nations in names.items()) or "nobody"

    @property
    def quarter(self) -> str:
        """The name of the last finished quarter; before the first step, the quarter before `first_quarter`."""
        return self._quarter_name(self.world.quarter - 1)

    def _quarter_name(self, quarter: int) -> str:
        return quarter_name(self.params.economy.first_quarter, quarter)

    @property
    def world(self) -> World:
        """The state of all economies, which you can replace."""
        return self.state.world

    @world.setter
    def world(self, world: World) -> None:
        self.state = self.state.with_world(world, self.macro)

    def nation_state(self, row: int) -> NationState:
        """Return the indicators of a nation without error."""
        return self.state.nation_states[row]

    def step(self) -> None:
        """Run one quarter.

        Raises LLMFailureException if an LLM gave no usable answer, and OracleError if a replayed ledger lacks a
        question; the model is then unchanged.
        """
        quarter, decisions = self._quarter_name(self.world.quarter), self._decide()
        policies = {d.row: d.reading.policy for d in decisions if d.action.validated and d.reading.policy}
        world = self.macro.next_quarter(with_policies(self.world, policies, self.macro.names), self._shocks())
        n_remembered = [nation.memory for nation in self._all_nations]
        state = self.state.next(decisions, world, self.macro, quarter, n_remembered)
        if self.recorder is not None:
            for table, columns in quarter_rows(state, self.macro.names, quarter).items():
                self.recorder.write(table, columns)
        self._set_state(state)
        self.prism_datacollector.collect_round(self)

    def _set_state(self, state: EconomyState) -> None:
        self.state = state
        self.running = self.running and state.world.quarter < self.params.rounds
        for nation in self.nations:
            nation.past = state.past[nation.row]
            nation.reasoning_chain = state.decisions[nation.row].chain if state.decisions else None

    @property
    def rounds_done(self) -> int:
        """The number of finished quarters."""
        return self.world.quarter

    def warn(self, text: str) -> None:
        """Warn, and add the text to `notes`."""
        self.notes += (text,)
        warnings.warn(f"EconomyModel: {text}", NotedWarning, stacklevel=2)

    def observe(self) -> list[SimulationState]:
        """Return the current state as each nation sees it, in the order of their rows."""
        quarter = self._quarter_name(self.world.quarter)
        return observe_nations(self.macro, self.world, quarter, self.streams, self.params.economy.noise)

    def _decide(self) -> list[NationDecision]:
        nations = self.nations
        proposals = self._collect_proposals([nation for nation in nations if isinstance(nation, EconLLMAgent)])
        context = RuleContext(self.world, self.macro, self.params.economy.limits, self.streams)
        decisions = []
        for nation in self._all_nations:
            proposal = proposals.get(nation.row)
            if proposal is None:
                rule = nation.rule if isinstance(nation, RuleAgent) and nation in nations else "nothing"
                proposal = propose_by_rule(rule, nation.name, nation.row, context)
            action, reading, chain = proposal
            judgement = Judgement()
            if reading.policy is not None:
                judgement = self._judge(reading.policy, nation.row)
                action = action.model_copy(update={"validated": judgement.accepted})
            decisions.append(NationDecision(nation.row, action, reading, chain, judgement))
        return decisions

    def _collect_proposals(self, nations: Sequence[EconLLMAgent]) -> dict[int, Proposal]:
        """Return the proposals of nations with an LLM, by row; raise the first nation's failure."""
        if not nations:
            return {}
        seen_states = self.observe()
        reasoned_actions: Sequence[ReasonedAction[PolicyDecision] | None] = [None] * len(nations)
        if self.llm is not None and self.params.economy.deliberate:
            reasoned_actions = decide_all(nations, [seen_states[nation.row] for nation in nations], self.llm)

        async def propose(nation: EconLLMAgent, reasoned_action: ReasonedAction[PolicyDecision] | None) -> Proposal:
            state = seen_states[nation.row]
            action, chain = reasoned_action or await nation.decide(state)
            return action, await nation.read(action, state), chain

        async def propose_all() -> list[Proposal | BaseException]:
            return await asyncio.gather(*map(propose, nations, reasoned_actions), return_exceptions=True)

        proposals: dict[int, Proposal] = {}
        for nation, proposal in zip(nations, run_now(propose_all()), strict=True):
            if isinstance(proposal, BaseException):
                raise proposal
            proposals[nation.row] = proposal
        return proposals

    def _judge(self, policy: Policy, row: int) -> Judgement:
        return judge(policy, self.world, row, self.macro.names, self.params.economy.limits)

    def _shocks(self) -> Shocks:
        params, rows, quarter = self.params.economy.macro, np.arange(len(self._all_nations)), self.world.quarter

        def draw(name: str, sd: float, common: float = 0.0) -> Floats:
            national_draw = self.streams.normal(f"shock/{name}", rows, index=quarter)
            common_draw = self.streams.normal(f"shock/{name}", -1, index=quarter)
            shock: Floats = sd * (np.sqrt(1 - common) * national_draw + np.sqrt(common) * common_draw)
            return shock

        return Shocks(
            demand=draw("demand", params.demand_sd, params.common),
            supply=draw("supply", params.supply_sd, params.common),
            labor=draw("labor", params.labor_sd),
        )

    def close(self) -> None:
        """Close the connections of the LLM; calling this twice is harmless."""
        if self.llm is not None:
            self.llm.close()
