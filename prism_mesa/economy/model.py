"""`EconomyModel`: nations that set policy, in an economy that answers, as a Mesa model.

A quarter, which is one `step()`:

1. observe: each nation sees its own indicators as they are, and the others' with an error.
2. decide: all nations at once, each by what it saw; an LLM's words are read into a `Policy`.
3. validate: each policy is computed through as the world stands; what fails a check is recorded and has no effect.
4. apply: the instruments are set, all at once, each nation's own.
5. the economy moves on by a quarter.
6. collect: the DataCollector and the recorder get the quarter's rows.

The quarter is computed as a value, an `EconomyState`, which becomes the model's when its rows are written. If an LLM
gives no usable answer in step 2, or anything else fails before that, the model is what it was, Mesa's clock included,
and `step()` can be called again.
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
from prism_mesa.economy.without_effect import keys_without_effect
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
        llm: Who is asked with `economy.policy=llm`: a client, or a function of the prompt; None makes what the
            parameters name, which is nobody, and then Taylor's rule, where there is no LLM.
        agent_reporters: As for `SocialModel`, like `model_reporters`.
        params: Parameters by name: ``economy_policy="taylor"`` (dots written as _).

    Attributes:
        state: Everything that a step changes; a new value after each.
        nations: The agents, in the order of their rows. A nation that you remove decides nothing from then on; its
            economy and its policies stay.
        world: Where all nations stand.
        seen: The indicators of all nations, exactly, each of shape (n,).
        decided: What the nations decided in the last quarter.
        llm: Who is asked; None if nobody is.
        readings: How answers were read in a run that is repeated, by quarter and nation; others are read anew.
        note: Why an LLM does not decide although one was wished for, or why it is not the first choice; else empty.
        notes: `note`, which keys were set and have no effect, which nations have default values, and other warnings.
        totals: Decisions so far: accepted, rejected (by the validator), not_understood, no_change (accepted,
            nothing to carry out).
        read_by: Who read them: parser, llm, or rule where there was nothing to read.
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
        own = self.params.economy
        self.streams = Streams(self.params.seed)
        self.macro = Macro(own.nations, own.macro)
        self.state = EconomyState.first(self.macro)
        self.llm, self.note = self._advisor(llm)
        self._seats = [self._nation(row, name) for row, name in enumerate(self.macro.names)]
        self.readings: Mapping[tuple[int, str], Reading] = {}
        self.recorder = recorder
        self._start_collecting(make_datacollector(), agent_reporters=agent_reporters, model_reporters=model_reporters)
        rules = {nation.rule for nation in self.nations if isinstance(nation, RuleAgent)}
        has_own = isinstance(llm, LLMClient)
        idle = keys_without_effect(self.params, rules, self.llm, given=llm is not None, has_own=has_own)
        self.notes = (*nations_by_default(own.nations), *idle)
        if self.notes:
            warnings.warn(f"EconomyModel: {'; '.join(self.notes)}", NotedWarning, stacklevel=2)
        self.notes += (self.note,) if self.note else ()

    def _policy_of(self, row: int) -> str:
        return self.params.economy.nations[row].policy or self.params.economy.policy

    def _advisor(self, llm: Any) -> tuple[LLMClient | None, str]:
        """Return the LLM if any nation has one, and why not, or why it is not the one wished for."""
        own, reasoner = self.params.economy, self.params.reasoner
        if all(self._policy_of(row) != "llm" for row in range(len(own.nations))):
            if llm is not None:
                raise ConfigError(
                    f"EconomyModel: llm: nobody asks it: economy.policy is {own.policy}, and no nation's policy is llm"
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
        own, policy = self.params.economy, self._policy_of(row)
        if policy != "llm" or self.llm is None:
            return RuleAgent(self, name, "taylor" if policy == "llm" else policy, row=row)
        style = own.prompt_style or ("examples" if self.llm.kind == "embedded" else "chain_of_thought")
        return EconLLMAgent(
            self,
            name,
            self.llm,
            domain=own.domain,
            prompt_style=style,
            row=row,
            memory=own.memory,
            thinking=self.params.deliberation if own.deliberate else None,
            judge=partial(self._judgement, row=row),
            typed_measures=own.typed_measures,
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
        by: dict[str, list[str]] = {}
        for nation in self.nations:
            by.setdefault(nation.decided_by, []).append(nation.name)
        if len(by) == 1:
            return next(iter(by))
        return "; ".join(f"{who} for {', '.join(names)}" for who, names in by.items()) or "nobody"

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
        self._record(state)
        self._set_state(state)
        self.prism_datacollector.collect_round(self)

    def _next_state(self) -> EconomyState:
        """Return the state a quarter later; nothing changes."""
        decided = self._decide()
        policies = {one.row: one.reading.policy for one in decided if one.action.validated and one.reading.policy}
        set_ = with_policies(self.world, policies, self.macro.names)
        world = self.macro.next_quarter(set_, self._shocks())
        memory = [nation.memory for nation in self._seats]
        return self.state.after(decided, world, self.macro, self._name_of(self.world.quarter), memory)

    def _record(self, state: EconomyState) -> None:
        """Write the rows of a state's last quarter, all of which are made first."""
        if self.recorder is not None:
            quarter = self._name_of(state.world.quarter - 1)
            for table, columns in rows_of(state, self.macro.names, quarter).items():
                self.recorder.write(table, columns)

    def _set_state(self, state: EconomyState) -> None:
        """Make a state the model's and its nations'."""
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
        asking = [nation for nation in nations if isinstance(nation, EconLLMAgent)]
        found = self._asked(asking) if asking else []
        said = dict(zip((one.row for one in asking), found, strict=True))
        context = RuleContext(self.world, self.macro, self.params.economy.limits, self.streams)
        decided = []
        for nation in self._seats:
            proposal: Proposal | BaseException
            if nation not in nations:
                proposal = by_rule("nothing", nation.name, nation.row, context)
            else:
                proposal = nation.decide(context) if isinstance(nation, RuleAgent) else said[nation.row]
            if isinstance(proposal, BaseException):
                raise proposal
            decided.append(self._judged(nation.row, proposal))
        return decided

    def _asked(self, asking: Sequence[EconLLMAgent]) -> list[Proposal | BaseException]:
        """Return what nations propose that an LLM advises, or how they failed, in their order."""
        states = self.observe()
        own = [states[one.row] for one in asking]
        if self.llm is not None and self.params.economy.deliberate:
            decisions = decide_all(asking, own, self.llm)
            waiting = [
                self._read(one, decided, state) for one, decided, state in zip(asking, decisions, own, strict=True)
            ]
        else:
            waiting = [self._propose(one, state) for one, state in zip(asking, own, strict=True)]

        async def all_at_once() -> list[Proposal | BaseException]:
            return await asyncio.gather(*waiting, return_exceptions=True)

        return run_now(all_at_once())

    async def _propose(self, nation: EconLLMAgent, state: SimulationState) -> Proposal:
        return await self._read(nation, await nation.decide(state), state)

    async def _read(self, nation: EconLLMAgent, reasoned: Reasoned[PolicyDecision], state: SimulationState) -> Proposal:
        known = self.readings.get((state.turn, nation.name))
        return await nation.read(reasoned, state) if known is None else (reasoned.action, known, reasoned.chain)

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
        own, rows = self.params.economy.macro, np.arange(len(self._seats))

        def draw(name: str, sd: float, common: float = 0.0) -> Floats:
            index = self.world.quarter
            alone = self.streams.normal(f"shock/{name}", rows, index=index)
            shared = self.streams.normal(f"shock/{name}", -1, index=index)
            drawn: Floats = sd * (np.sqrt(1 - common) * alone + np.sqrt(common) * shared)
            return drawn

        return Shocks(
            demand=draw("demand", own.demand_sd, own.common),
            supply=draw("supply", own.supply_sd, own.common),
            labor=draw("labor", own.labor_sd),
        )

    def close(self) -> None:
        """End the LLM's connections; doing it twice does no harm."""
        if self.llm is not None:
            self.llm.close()
