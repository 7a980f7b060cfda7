"""Interview an agent of a finished run, and keep the transcript in a new folder; the run is only read."""

import os
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from prism_mesa.analysis.interview.evidence import (
    EXAMPLES,
    FREE_EXAMPLES,
    ConstrainedRecall,
    find_references,
    find_unrecorded,
    make_recall_form,
)
from prism_mesa.analysis.interview.tools import RecallTools, best_matches, search_text
from prism_mesa.analysis.interview.transcript import Exchange, as_json, as_markdown, json_text
from prism_mesa.analysis.llm import as_overrides, make_llm, make_llm_config, read_llm_config
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
from prism_mesa.errors import AgentError, DataError, OracleError, PrismError, format_count, one_line, redact_credentials
from prism_mesa.llm import Ledger, RunPosition
from prism_mesa.llm.clients.embedded import SMOLLM2_NAME
from prism_mesa.params import require_overrides, require_whole_number
from prism_mesa.runs.archive import AgentSnapshot, RunRecords
from prism_mesa.runs.process.machine import provenance, wall_clock
from prism_mesa.runs.records.folder import new_folder
from prism_mesa.runs.run_files import LEDGER, check_output_folder, run_folder
from prism_mesa.social.content.activity import activity_line
from prism_mesa.streams import digest64, draw_seed

ACTIVITIES_SHOWN: Final = 8  # number of latest activities in every prompt; tools find earlier ones
N_RECALLED: Final = 3  # number of earlier activities in a prompt: the best matches of the question
TASK: Final = (
    "You are that user, and a researcher interviews you about what you did on the platform. Say in one or two "
    "sentences what you did and why, in the first person. Speak only of what stands in your memory; if it is not "
    "there, say that you do not know."
)


def make_context(records: RunRecords, snapshot: AgentSnapshot, params: DeliberationParams) -> TurnContext:
    """Return the context of an interview: the agent's profile and memory, tools, the task, and limits."""
    earlier = snapshot.activities[:-ACTIVITIES_SHOWN]

    def recall(question: str) -> list[str]:
        return [activity_line(activity) for activity in best_matches(earlier, question, search_text, N_RECALLED)]

    memory = snapshot.memory(ACTIVITIES_SHOWN) or "You have not been on the platform yet: you remember nothing of it."
    return TurnContext(
        tools=RecallTools(records, snapshot).registry(params.result_chars) if params.max_tool_calls else ToolRegistry(),
        description=f"{snapshot.profile}\n\nYour memory:\n{memory}",
        task=TASK,
        recall=recall,
        limits=Limits(params.iterations, params.max_tool_calls, params.max_tokens, params.max_seconds),
    )


class Interview(Deliberation):
    """An interview with an agent of a run, as the agent was after a round.

    Args:
        run: A result, or the run's folder, which is only read.
        agent: The agent's row, id, or name.
        at: The last round that the agent remembers; None for the last completed round, -1 for before the run.
        llm: The LLM that plays the agent (see `deliberation.as_llm_client`); None: the configured LLM.
        overrides: ``reasoner.*`` and ``deliberation.*`` on top of the run's configuration: values by dotted key, or
            ``key=value``.
        free: Whether the small embedded LLM answers freely, as other LLMs do; by default it only names an activity.
        out: The parent folder of saved interviews.
        trust: Whether to use the server or model file that a run from elsewhere names.

    Attributes:
        snapshot: The agent.
        constrained: Whether each answer is one of the agent's activities.
        transcript: The questions and answers so far.

    Raises:
        DataError: If the run, agent or round is missing or not trusted, or `out` cannot be used.
        ConfigError: If an override is not allowed, or there is no LLM.
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
        run_dir, at = run_folder(run), None if at is None else require_whole_number(at, "--at")
        require_overrides(overrides)
        self.out = Path(out)
        if self.out.exists() and not self.out.is_dir():
            raise DataError(f"--out: {out} is not a folder")
        check_output_folder(out)
        self.records = RunRecords(run_dir)
        self.snapshot = self.records.snapshot(self.records.find_row(str(agent)), at)
        overrides = as_overrides(overrides)
        config = read_llm_config(self.records.run, overrides, uses_configured_llm=llm is None, trust=trust)
        params = make_llm_config(config, overrides).deliberation
        context = make_context(self.records, self.snapshot, params)
        agent_llm = make_llm(config, overrides, llm=self.snapshot.llm, continues=True) if llm is None else llm
        super().__init__(agent_llm, context, conversation=Conversation(max_tokens=params.conversation_tokens))
        self._owns_llm = self._owns_llm or llm is None
        is_smollm = self.llm.client.name == SMOLLM2_NAME
        self.constrained = is_smollm and not free
        if is_smollm:
            self.context = replace(self.context, examples=EXAMPLES if self.constrained else FREE_EXAMPLES)
        self.started = wall_clock()
        self.overrides = overrides
        self.transcript: list[Exchange] = []
        self._folder = tempfile.TemporaryDirectory(prefix="prism-interview-", suffix=".temporary")
        self.ledger = Ledger(Path(self._folder.name) / LEDGER)  # temporary, until `save` is called
        if self.llm.store.run_ledger is None:  # otherwise the caller records the answers
            position = digest64(f"{self.snapshot.run_dir.name} {self.snapshot.row} {self.snapshot.last_round}")
            self.llm.record(self.ledger, f"{position:016x}/interview-{draw_seed():x}")

    @one_line
    def __repr__(self) -> str:
        agent, n = self.snapshot, len(self.transcript)
        when = "before the run" if agent.last_round < 0 else f"after round {agent.last_round}"
        return f"<Interview with {agent.row} {agent.name!r} {when}: {format_count(n, 'question')}, {agent.run_dir}>"

    def ask(self, question: str) -> str:
        """Return the agent's answer to a question; `transcript` has the details.

        Raises AgentError as `chat_stream` does, and PrismError if there is no answer.
        """
        for _ in self.chat_stream(question):
            pass
        exchange = self.transcript[-1]
        if not exchange.text:
            raise PrismError(f"{self.llm.label} did not answer: {(exchange.errors or ['no text'])[-1]}")
        return exchange.text

    def chat_stream(self, user_input: str) -> Iterator[Event]:
        """Yield the answer to a question as events, including errors of the LLM; `transcript` has the question first.

        Raises AgentError if `user_input` is empty or has more than 8,000 characters, or if another question is still
        being answered.
        """
        turn, exchange = super().chat_stream(user_input), Exchange(user_input)
        position = RunPosition(max(self.snapshot.last_round, 0), self.snapshot.row, len(self.transcript))
        self.transcript.append(exchange)  # before an interrupt is possible
        return self._stream_answer(exchange, position, turn)

    def _prepare(self, question: str, position: RunPosition) -> None:
        """Set the position in the ledger, and the activities that a constrained answer may name."""
        self.context = replace(self.context, position=position)
        if self.constrained:
            self.conversation.messages.clear()  # a small LLM cannot follow a conversation
            activities = self.snapshot.activities
            matches = best_matches(activities, question, search_text, only_best=True) or activities[-ACTIVITIES_SHOWN:]
            self.context = replace(self.context, response_type=make_recall_form(matches))

    def _stream_answer(self, exchange: Exchange, position: RunPosition, turn: Iterator[Event]) -> Generator[Event]:
        try:
            self._prepare(exchange.question, position)
            for event in map(self._extract_answer, turn):
                exchange.add_event(event)
                yield event
        except OracleError as error:
            failure = AgentErrorEvent(reason=error.reason, text=str(error))
            exchange.add_event(failure)
            yield failure
        except AgentError:  # another question is still being answered
            self.transcript[:] = [other for other in self.transcript if other is not exchange]
            raise
        except KeyboardInterrupt:
            exchange.add("error", text="interrupted")
            raise
        finally:
            exchange.refers_to = find_references(exchange.text, self.snapshot.activities)
            exchange.not_in_records = find_unrecorded(exchange.text, self.snapshot, self.records.names)

    def _extract_answer(self, event: Event) -> Event:
        if not self.constrained or not isinstance(event, AgentTextEvent) or event.type != "text":
            return event
        return AgentTextEvent(text=ConstrainedRecall.model_validate_json(event.text).what)

    def save(self) -> Path | None:
        """Save transcript and ledger in ``out/interview-<date>-<time>``, and return it; None without questions."""
        if not self.transcript:
            return None
        folder = new_folder(self.out, "interview")
        if has_answers := self.ledger.answers() or self.ledger.asked():
            with Ledger(folder / LEDGER) as ledger:
                ledger.write(self.ledger.answers(), self.ledger.asked())
        manifest = {**provenance(), **self.facts(), "status": "done", "started": self.started, "ended": wall_clock()}
        manifest |= {"overrides": [*map(redact_credentials, self.overrides)], "ledger": LEDGER if has_answers else None}
        files = {"transcript.json": as_json(self.facts(), self.transcript), "manifest.json": json_text(manifest)}
        files["transcript.md"] = as_markdown(self.facts(), self.started, self.transcript)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8", errors="replace")
        return folder

    def facts(self) -> dict[str, Any]:
        """Return facts about the agent and the LLM for the manifest."""
        agent, llm = self.snapshot, self.llm
        return {
            "system": "interview",
            "run": str(agent.run_dir),
            "agent": {"row": agent.row, "name": agent.name},
            "at": agent.last_round,
            "llm": {
                "kind": llm.kind,
                "name": llm.client.name,
                "label": llm.label,
                "digest": str(getattr(llm.client, "digest", "")),
                "decoding": dict(llm.client.decoding),
                "ledger": llm.store.mode,
            },
            "held_to_deeds": self.constrained,
            "limits": asdict(self.context.limits),
        }

    def close(self) -> None:
        """Close the LLM if this interview made it, and delete the temporary ledger."""
        super().close()
        self.ledger.close()
        self._folder.cleanup()
