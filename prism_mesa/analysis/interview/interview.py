"""Talking with an agent as its run left it: what it is told, what it may look up, and what is kept of the talk.

The run's folder is only read; what the agent says goes into a folder of its own.
"""

import os
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from prism_mesa.analysis.interview.constrained import EXAMPLES, FREE_EXAMPLES, ConstrainedRecall, constrained_recall_of
from prism_mesa.analysis.interview.evidence import not_in_records, refers_to
from prism_mesa.analysis.interview.tools import RecallTools, best_of, searched
from prism_mesa.analysis.interview.transcript import Exchange, as_json, as_markdown, in_json
from prism_mesa.analysis.llm import as_overrides, config_to_ask, llm_for, played_config
from prism_mesa.deliberation import (
    AgentErrorEvent,
    AgentTextEvent,
    Conversation,
    Deliberation,
    Event,
    Limits,
    ToolRegistry,
    TurnContext,
)
from prism_mesa.deliberation.deliberation import LLM
from prism_mesa.deliberation.params import DeliberationParams
from prism_mesa.errors import AgentError, DataError, OracleError, PrismError, counted, one_line, said_openly
from prism_mesa.llm import Ledger, RunPosition
from prism_mesa.llm.clients.embedded import SMOLLM2_NAME
from prism_mesa.params import require_overrides, require_whole_number
from prism_mesa.runs.archive import AgentSnapshot, RunRecords
from prism_mesa.runs.process.machine import provenance, wall_clock
from prism_mesa.runs.records.folder import new_folder
from prism_mesa.runs.run_files import LEDGER, check_out, folder_of
from prism_mesa.social.content.activity import activity_line
from prism_mesa.streams import digest64, fresh_seed

ACTIVITIES_SHOWN: Final = 8
"""Activities that an agent has in mind: the last ones; tools find the others."""
RECALLED: Final = 3
"""Activities of before that come to mind of a question."""
TASK: Final = (
    "You are that user, and a researcher interviews you about what you did on the platform. Say in one or two "
    "sentences what you did and why, in the first person. Speak only of what stands in your memory; if it is not "
    "there, say that you do not know."
)


def context_of(records: RunRecords, snapshot: AgentSnapshot, own: DeliberationParams) -> TurnContext:
    """Return what an interview goes by: profile and memory, tools over the run's tables, the task.

    Args:
        records: The run.
        snapshot: Who is interviewed.
        own: Where a turn stops, and how much of a tool's result is told.
    """
    before = snapshot.activities[:-ACTIVITIES_SHOWN]

    def recall(question: str) -> list[str]:
        return [activity_line(activity) for activity in best_of(before, question, searched, RECALLED)]

    memory = snapshot.memory(ACTIVITIES_SHOWN) or "You have not been on the platform yet: you remember nothing of it."
    return TurnContext(
        tools=RecallTools(records, snapshot).registry(own.result_chars) if own.max_tool_calls else ToolRegistry(),
        who=f"{snapshot.who}\n\nYour memory:\n{memory}",
        task=TASK,
        recall=recall,
        limits=Limits(own.iterations, own.max_tool_calls, own.max_tokens, own.max_seconds),
    )


class Interview(Deliberation):
    """A talk with an agent of a run, as it was after a round.

    Args:
        run: A result, or the run's folder, which is only read.
        agent: The agent's row, id, or name.
        at: The last round that it remembers; None is the last that was completed, -1 before the run.
        llm: Who plays the agent (see `deliberation.as_llm_client`); None: what the configuration names.
        overrides: ``reasoner.*`` and ``deliberation.*``, over the run's configuration: values by dotted key, or
            ``key=value``.
        free: Whether the small embedded LLM, whose answers are otherwise each one of its activities, speaks in words of
            its own, as every other LLM does.
        out: Parent folder of what is kept, by `save`.
        trust: Whether a server, and a model file, that only the folder names may be used; those of runs made here may
            be.

    Attributes:
        snapshot: The agent.
        constrained: Whether each answer is one of the agent's activities.
        transcript: What was asked and answered so far.

    Raises:
        DataError: If there is no such run, agent or round, it is not trusted, or `out` is no folder, or lies in a run.
        ConfigError: If an override is not allowed, or no LLM is there.
    """

    def __init__(
        self,
        run: str | os.PathLike[str],
        agent: str | int,
        *,
        at: int | None = None,
        llm: LLM | None = None,
        overrides: Sequence[str] | Mapping[str, Any] = (),
        free: bool = False,
        out: str | Path = "results",
        trust: bool = False,
    ) -> None:
        run_dir, at = folder_of(run), None if at is None else require_whole_number(at, "--at")
        require_overrides(overrides)
        self.out = Path(out)
        if self.out.exists() and not self.out.is_dir():
            raise DataError(f"--out: {out}: is no folder")
        check_out(out)
        self.records = RunRecords(run_dir)
        self.snapshot = self.records.snapshot(self.records.row_of(str(agent)), at)
        overrides = as_overrides(overrides)
        config = config_to_ask(self.records.run, overrides, asks=llm is None, trust=trust)
        own = played_config(config, overrides).deliberation
        context = context_of(self.records, self.snapshot, own)
        player = llm_for(config, overrides, llm=self.snapshot.llm, continues=True) if llm is None else llm
        super().__init__(player, context, conversation=Conversation(max_tokens=own.conversation_tokens))
        self._owns_llm = self._owns_llm or llm is None
        is_small = self.llm.client.name == SMOLLM2_NAME
        self.constrained = is_small and not free
        if is_small:
            self.context = replace(self.context, examples=EXAMPLES if self.constrained else FREE_EXAMPLES)
        self.started = wall_clock()
        self.overrides = overrides
        self.transcript: list[Exchange] = []
        self._begin_ledger()

    @one_line
    def __repr__(self) -> str:
        own, n = self.snapshot, len(self.transcript)
        when = "before the run" if own.at < 0 else f"after round {own.at}"
        return f"<Interview with {own.row} {own.name!r} {when}: {counted(n, 'question')}, {own.run_dir}>"

    def _begin_ledger(self) -> None:
        """Record what is asked in a ledger beside everything, until it is known whether any of it is kept."""
        self._folder = tempfile.TemporaryDirectory(prefix="prism-interview-", suffix=".temporary")
        self.ledger = Ledger(Path(self._folder.name) / LEDGER)
        if self.llm.store.own is None:  # else somebody keeps it elsewhere already
            whose = digest64(f"{self.snapshot.run_dir.name} {self.snapshot.row} {self.snapshot.at}")
            self.llm.record(self.ledger, f"{whose:016x}/interview-{fresh_seed():x}")

    def ask(self, question: str) -> str:
        """Return the agent's answer to a question; `transcript` has more of it.

        Raises:
            AgentError: As for `chat_stream`.
            PrismError: If no answer came.
        """
        for _ in self.chat_stream(question):
            pass
        exchange = self.transcript[-1]
        if not exchange.text:
            raise PrismError(f"{self.llm.label} did not answer: {(exchange.errors or ['it said nothing'])[-1]}")
        return exchange.text

    def chat_stream(self, user_input: str) -> Iterator[Event]:
        """Answer a question; notes it in `transcript` at once, and what happens as it is yielded.

        What goes wrong with the LLM is an event as well, a prompt that a replayed ledger does not hold among it.

        Raises:
            AgentError: If there is nothing in `user_input`, it has more than 8,000 characters, or another question is
                still being answered.
        """
        turn = super().chat_stream(user_input)
        exchange, place = (
            Exchange(user_input),
            RunPosition(max(self.snapshot.at, 0), self.snapshot.row, len(self.transcript)),
        )
        self.transcript.append(exchange)  # at once, so that an interrupt cannot come before
        return self._play(exchange, place, turn)

    def _prepare(self, question: str, place: RunPosition) -> None:
        """Say where the question stands in the ledger and, where each answer is an activity, to which."""
        self.context = replace(self.context, place=place)
        if self.constrained:
            self.conversation.messages.clear()  # it does not follow a talk, which would only slow it down
            activities = self.snapshot.activities
            known = best_of(activities, question, searched, ties=True) or activities[-ACTIVITIES_SHOWN:]
            self.context = replace(self.context, form=constrained_recall_of(known))

    def _play(self, exchange: Exchange, place: RunPosition, turn: Iterator[Event]) -> Generator[Event]:
        try:
            self._prepare(exchange.question, place)
            for event in map(self._in_words, turn):
                exchange.note(event)
                yield event
        except OracleError as error:
            failure = AgentErrorEvent(reason=error.reason, text=str(error))
            exchange.note(failure)
            yield failure
        except AgentError:  # another question is being answered: this one was not asked
            self.transcript[:] = [other for other in self.transcript if other is not exchange]
            raise
        except KeyboardInterrupt:
            exchange.note_interruption()
            raise
        finally:
            exchange.refers_to = refers_to(exchange.text, self.snapshot.activities)
            exchange.not_in_records = not_in_records(exchange.text, self.snapshot, self.records.names)

    def _in_words(self, event: Event) -> Event:
        """Return a response that came in a form in words; any other event as it is."""
        if not self.constrained or not isinstance(event, AgentTextEvent) or event.type != "text":
            return event
        return AgentTextEvent(text=ConstrainedRecall.model_validate_json(event.text).what)

    def save(self) -> Path | None:
        """Keep transcript and ledger in ``out/interview-<date>-<time>`` and return it; None if nothing was asked."""
        if not self.transcript:
            return None
        folder = new_folder(self.out, "interview")
        if kept := self.ledger.answers() or self.ledger.asked():
            with Ledger(folder / LEDGER) as ledger:
                ledger.write(self.ledger.answers(), self.ledger.asked())
        manifest = {**provenance(), **self.facts(), "status": "done", "started": self.started, "ended": wall_clock()}
        manifest |= {"overrides": [*map(said_openly, self.overrides)], "ledger": LEDGER if kept else None}
        files = {"transcript.json": as_json(self.facts(), self.transcript), "manifest.json": in_json(manifest)}
        files["transcript.md"] = as_markdown(self.facts(), self.started, self.transcript)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8", errors="replace")
        return folder

    def facts(self) -> dict[str, Any]:
        """Return who was interviewed, and who spoke for it."""
        own, llm = self.snapshot, self.llm
        said: dict[str, Any] = {"kind": llm.kind, "name": llm.client.name, "label": llm.label}
        said |= {"digest": str(getattr(llm.client, "digest", "")), "decoding": dict(llm.client.decoding)}
        limits = asdict(self.context.limits)
        who = {"row": own.row, "name": own.name}
        facts = {"system": "interview", "run": str(own.run_dir), "agent": who, "at": own.at}
        return {**facts, "llm": said | {"ledger": llm.store.mode}, "held_to_deeds": self.constrained, "limits": limits}

    def close(self) -> None:
        """End the LLM's background thread, if the LLM was made here, and drop the ledger that was not kept."""
        super().close()
        self.ledger.close()
        self._folder.cleanup()
