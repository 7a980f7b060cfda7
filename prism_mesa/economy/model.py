"""`EconomyModel`: nations that set policy, in an economy that answers, as a Mesa model.

A quarter, which is one `step()`:

1. observe: each nation sees its own indicators as they are, and the others' with an error.
2. decide: all nations at once, each by what it saw; an LLM's answer is read into a `Policy`.
3. validate: each policy is checked against the world as it is; a policy that fails is recorded and has no effect.
4. apply: all instruments are set at once.
5. the economy moves on by a quarter.
6. collect: the DataCollector and the recorder get the quarter's rows.

A step computes an `EconomyState`, writes its rows, and makes it the model's. If anything fails before, neither the
model nor Mesa's clock changes, and you can call `step()` again.
"""

import asyncio
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import mesa
import numpy as np

from prism_mesa.economy.agent import EconLLMAgent, Proposal, RuleAgent, by_rule
from prism_mesa.economy.collect import QuarterRecorder, make_datacollector, rows_of
from prism_mesa.economy.llm_agent import Reasoned, decide_all
from prism_mesa.economy.macro import Macro
from prism_mesa.economy.nations import nations_by_default
from prism_mesa.economy.observation import NationState, SimulationState, observed
from prism_mesa.economy.params import EconomyParams, quarter_name
from prism_mesa.economy.policy import Policy, with_policies
from prism_mesa.economy.reading import PolicyDecision, Reading
from prism_mesa.economy.rules import RuleContext
from prism_mesa.economy.state import Decided, EconomyState
from prism_mesa.economy.validator import Judgement, judge
from prism_mesa.economy.without_effect import Known, keys_without_effect
from prism_mesa.economy.world import Floats, Shocks, World
from prism_mesa.errors import ConfigError, NotedWarning, counted, one_line
from prism_mesa.llm import LLMClient, make_llm_client
from prism_mesa.llm.clients.event_loop import run_now
from prism_mesa.llm.factory import answer_store
from prism_mesa.params import FROM_PARAMS, model_params
from prism_mesa.round_model import Read, Reporters, RoundModel
from prism_mesa.streams import Streams


class _Read[T](Read[T]):
    """A field of the state."""

    part = "state"


class EconomyModel(RoundModel):
    """Nations and their economies; see the module's text for the order of a quarter.

    Args:
        config: All parameters, or nested values for them; by default those of `EconomyParams`.
        scenario: A Mesa scenario; its attributes are parameters.
        rng: The seed (Mesa's name for it), as in `SocialModel`. Overrides `seed`.
        recorder: Where records go; None keeps only what the DataCollector holds.
        llm: The LLM for `economy.policy=llm`: a client, or a function of the prompt. None makes the one that the
            parameters name; where there is none, Taylor's rule decides.
        agent_reporters: As for `SocialModel`, like `model_reporters`.
        params: Parameters by name: ``economy_policy="taylor"`` (dots written as _).

    Attributes:
        state: Everything that a step changes; a new value after each.
        nations: The agents, in the order of their rows. A nation that you remove decides nothing from then on; its
            economy and its policies stay.
        world: Where all nations stand.
        seen: The indicators of all nations, exactly, each of shape (n,).
        decided: What the nations decided in the last quarter.
        llm: The LLM; None if there is none.
        readings: Recorded readings of answers, by quarter and nation, for a run that is repeated.
        note: Why no LLM, or not the preferred one, decides; else empty.
        notes: `note`, keys without effect, nations with default values, and other warnings.
        totals: Decisions so far by outcome (see `tables.OUTCOMES`); `read_by` by where their measures come from.
        prism_datacollector: As for `SocialModel`. For each nation and quarter it has the indicators
            (`observation.INDICATORS`); for the world `accepted`, `no_change`, `rejected`, `not_understood` and the
            means of output gap, inflation and unemployment, weighted by output.

    Warns:
        NotedWarning: What stands in `notes`.

    Raises:
        ConfigError: If a parameter is unknown or out of range, or the LLM that is named is not there.
    """

    seen = _Read[Mapping[str, Floats]]()
    decided = _Read[Sequence[Decided]]()
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
        self.llm, self.note = self._advisor(llm)
        self._seats = [self._nation(row, name) for row, name in enumerate(self.macro.names)]
        self.readings: Mapping[tuple[int, str], Reading] = {}
        self.recorder = recorder
        self._start_collecting(make_datacollector(), agent_reporters=agent_reporters, model_reporters=model_reporters)
        rules = frozenset(nation.rule for nation in self.nations if isinstance(nation, RuleAgent))
        known = Known(self.params, rules, self.llm, given=llm is not None, has_own=isinstance(llm, LLMClient))
        self.notes = (*nations_by_default(settings.nations), *keys_without_effect(known))
        if self.notes:
            warnings.warn(f"EconomyModel: {'; '.join(self.notes)}", NotedWarning, stacklevel=2)
        self.notes += (self.note,) if self.note else ()

    def _advisor(self, llm: Any) -> tuple[LLMClient | None, str]:
        """Return the LLM if any nation has one, and why there is none or not the preferred one."""
        settings, reasoner = self.params.economy, self.params.reasoner
        if "llm" not in settings.policies:
            if llm is not None:
                policy = settings.policy
                raise ConfigError(
                    f"EconomyModel: llm: nobody asks it: economy.policy is {policy}, and no nation's policy is llm"
                )
            return None, ""
        if llm is not None:
            if not isinstance(llm, LLMClient):
                llm = LLMClient(llm, reasoner, store=answer_store(reasoner))
            llm.begin()
            return llm, ""
        made, note = make_llm_client(reasoner)
        return made, note if made is not None else f"no LLM is at hand ({note}): Taylor's rule decides instead"

    def _nation(self, row: int, name: str) -> EconLLMAgent | RuleAgent:
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
            judge=partial(self._judgement, row=row),
            typed_measures=settings.typed_measures,
        )

    @one_line
    def __repr__(self) -> str:
        done = f"quarter {self.world.quarter} of {self.params.rounds} ({self.quarter})"
        nations = counted(len(self.nations), "nation")
        return f"<{type(self).__name__}: {nations}, {done}, seed {self.params.seed}, decided by {self.label}>"

    @property
    def nations(self) -> list[EconLLMAgent | RuleAgent]:
        """The agents that were not removed, in the order of their rows."""
        agents = self.agents
        return [nation for nation in self._seats if nation in agents]

    @property
    def label(self) -> str:
        """Who decides, for summaries."""
        names: dict[str, list[str]] = {}
        for nation in self.nations:
            names.setdefault(nation.decided_by, []).append(nation.name)
        if len(names) == 1:
            return next(iter(names))
        return "; ".join(f"{who} for {', '.join(whose)}" for who, whose in names.items()) or "nobody"

    @property
    def quarter(self) -> str:
        """The name of the last quarter that is over; before the first step the one before it."""
        return self._name_of(self.world.quarter - 1)

    def _name_of(self, quarter: int) -> str:
        return quarter_name(self.params.economy.first_quarter, quarter)

    @property
    def world(self) -> World:
        """Where all nations stand; what is set is where they stand from now on."""
        return self.state.world

    @world.setter
    def world(self, world: World) -> None:
        self.state = self.state.at(world, self.macro)

    def nation_state(self, row: int) -> NationState:
        """Return where a nation stands, exactly."""
        return self.state.nation_states[row]

    def step(self) -> None:
        """Run one quarter.

        Raises:
            LLMFailureException: If an LLM gave no usable answer; nothing has changed then.
            OracleError: If a ledger is replayed that does not hold a question; so here.
        """
        state = self._next_state()
        if self.recorder is not None:
            for table, columns in rows_of(state, self.macro.names, self._name_of(state.world.quarter - 1)).items():
                self.recorder.write(table, columns)
        self._set_state(state)
        self.prism_datacollector.collect_round(self)

    def _next_state(self) -> EconomyState:
        """Return the state a quarter later; the model does not change."""
        decided = self._decide()
        policies = {one.row: one.reading.policy for one in decided if one.action.validated and one.reading.policy}
        world = self.macro.next_quarter(with_policies(self.world, policies, self.macro.names), self._shocks())
        memory = [nation.memory for nation in self._seats]
        return self.state.after(decided, world, self.macro, self._name_of(self.world.quarter), memory)

    def _set_state(self, state: EconomyState) -> None:
        self.state = state
        self.running = self.running and state.world.quarter < self.params.rounds
        for nation in self.nations:
            nation.past = state.past[nation.row]
            nation.reasoning_chain = state.decided[nation.row].chain if state.decided else None

    @property
    def rounds_done(self) -> int:
        """Quarters that are over."""
        return self.world.quarter

    def say(self, text: str) -> None:
        """Warn of something, and keep it in `notes`."""
        self.notes += (text,)
        warnings.warn(f"EconomyModel: {text}", NotedWarning, stacklevel=2)

    def observe(self) -> list[SimulationState]:
        """Return what each nation sees now, in the order of their rows."""
        quarter = self._name_of(self.world.quarter)
        return observed(self.macro, self.world, quarter, self.streams, self.params.economy.noise)

    def _decide(self) -> list[Decided]:
        """Return what all nations decide, judged as the world stands; the first failure, by row, is raised."""
        nations = self.nations
        proposals = self._proposals([nation for nation in nations if isinstance(nation, EconLLMAgent)])
        context = RuleContext(self.world, self.macro, self.params.economy.limits, self.streams)
        decided = []
        for nation in self._seats:
            proposal: Proposal | BaseException
            if nation not in nations:
                proposal = by_rule("nothing", nation.name, nation.row, context)
            else:
                proposal = nation.decide(context) if isinstance(nation, RuleAgent) else proposals[nation.row]
            if isinstance(proposal, BaseException):
                raise proposal
            decided.append(self._judged(nation.row, proposal))
        return decided

    def _proposals(self, nations: Sequence[EconLLMAgent]) -> dict[int, Proposal | BaseException]:
        """Return what nations with an LLM propose, or how they failed, by row."""
        if not nations:
            return {}
        states = self.observe()
        reasoned: Sequence[Reasoned[PolicyDecision] | None] = [None] * len(nations)
        if self.llm is not None and self.params.economy.deliberate:
            reasoned = decide_all(nations, [states[nation.row] for nation in nations], self.llm)

        async def propose(nation: EconLLMAgent, reasoned: Reasoned[PolicyDecision] | None) -> Proposal:
            state = states[nation.row]
            action, chain = reasoned or await nation.decide(state)
            known = self.readings.get((state.turn, nation.name))
            return action, known or await nation.read(action, state), chain

        async def all_at_once() -> list[Proposal | BaseException]:
            return await asyncio.gather(*map(propose, nations, reasoned), return_exceptions=True)

        return dict(zip((nation.row for nation in nations), run_now(all_at_once()), strict=True))

    def _judged(self, row: int, proposal: Proposal) -> Decided:
        action, reading, chain = proposal
        judgement = Judgement()
        if reading.policy is not None:
            judgement = self._judgement(reading.policy, row)
            action = action.model_copy(update={"validated": judgement.accepted})
        return Decided(row, action, reading, chain, judgement)

    def _judgement(self, policy: Policy, row: int) -> Judgement:
        return judge(policy, self.world, row, self.macro.names, self.params.economy.limits)

    def _shocks(self) -> Shocks:
        """Return the quarter's shocks; of demand and inflation a share is common to all nations."""
        params, rows = self.params.economy.macro, np.arange(len(self._seats))

        def draw(name: str, sd: float, common: float = 0.0) -> Floats:
            index = self.world.quarter
            alone = self.streams.normal(f"shock/{name}", rows, index=index)
            shared = self.streams.normal(f"shock/{name}", -1, index=index)
            drawn: Floats = sd * (np.sqrt(1 - common) * alone + np.sqrt(common) * shared)
            return drawn

        return Shocks(
            demand=draw("demand", params.demand_sd, params.common),
            supply=draw("supply", params.supply_sd, params.common),
            labor=draw("labor", params.labor_sd),
        )

    def close(self) -> None:
        """End the LLM's connections; doing it twice does no harm."""
        if self.llm is not None:
            self.llm.close()
