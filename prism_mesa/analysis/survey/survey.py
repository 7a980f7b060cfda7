"""Ask agents of a finished run the same questions before and after the run.

Before the run, an agent has only its profile; after it, the agent also remembers its activities and notes. The run is
not repeated, and its folder is only read. An LLM's answers do not predict the answers of people.

The embedded SmolLM2-135M chooses letters at random, so it is asked by association (`AssociationScore`): how much do an
agent's profile and activities raise the probability of each option? This finds interests, not attitudes, and depends on
the wording of the options (see docs/interviews.md). All other LLMs answer with letters; `Replies.letter_probabilities`
shows whether they prefer some letters.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import batched
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from prism_mesa.analysis.llm import as_overrides, make_llm_config, read_llm_config
from prism_mesa.analysis.survey.questionnaire import (
    Questionnaire,
    SurveyQuestion,
    make_questionnaire,
    read_questionnaire,
)
from prism_mesa.analysis.survey.respondents import (
    answers_by_association,
    association_prompts,
    decision_prompt,
    sample_users,
    survey_clients,
    survey_prompt,
)
from prism_mesa.analysis.survey.results import SURVEY_TABLES, WAVES, Replies, answer_columns, means_table
from prism_mesa.arrays import Ints
from prism_mesa.errors import DataError, LLMFailureException, format_count, one_line
from prism_mesa.llm import ChatClient, LLMClient, LLMRequest, RunPosition
from prism_mesa.llm.association import AssociationScore
from prism_mesa.llm.clients.base import PromptFunction
from prism_mesa.llm.multiple_choice import MultipleChoice
from prism_mesa.params import require_overrides, require_whole_number, short_repr
from prism_mesa.runs.archive import AgentSnapshot, RunRecords
from prism_mesa.runs.config import Config
from prism_mesa.runs.lifecycle import RunBrokenError, RunInterruptedError, RunResult, run_to_completion
from prism_mesa.runs.manifest import llm_facts
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.runs.records.table_checks import write_csv
from prism_mesa.runs.rounds import RunTimer
from prism_mesa.runs.run_files import check_output_folder, run_folder
from prism_mesa.streams import Streams, digest64

DEFAULT_AGENTS: Final = 100
_REQUESTS_PER_SLOT: Final = 4


@dataclass(frozen=True, repr=False)
class SurveyResult:
    """The result of a survey.

    Attributes:
        folder: The folder of the survey.
        status: `done`, `failed` if too many answers are missing, or `interrupted`.
        summary: The summary that ``prism survey --json`` prints.
        table: See `results.means_table`.
    """

    folder: Path
    status: str
    summary: dict[str, Any]
    table: pd.DataFrame

    @one_line
    def __repr__(self) -> str:
        questions, agents = len(self.summary["questions"]), self.summary["agents"]
        sample = f"{format_count(questions, 'question')} to {format_count(agents, 'agent')}"
        return f"<SurveyResult {self.status}: {sample}, {self.folder}>"


def survey(
    run: str | os.PathLike[str],
    questions: str | Path | Mapping[str, Any] | Questionnaire,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    *,
    agents: int = DEFAULT_AGENTS,
    at: int | None = None,
    out: str | Path = "results",
    llm: ChatClient | PromptFunction | None = None,
    on_answers: Callable[[int, int], object] = lambda done, total: None,
    trust: bool = False,
) -> SurveyResult:
    """Ask agents of a run the same questions before and after the run, and store the answers in ``out/survey-<time>``.

    A keyed draw rotates the letters of the options for each agent (see `MultipleChoice`). The embedded SmolLM2 is asked
    by association (see `AssociationScore`); with ``reasoner.answer=decision`` a decision model weighs the options.

    Args:
        run: A result, or the run's folder, which is only read.
        questions: A YAML file, or a dictionary: ``{"questions": [{"id": ..., "ask": ..., "options": [...]}]}``.
        overrides: ``reasoner.*`` and ``deliberation.*`` on top of the run's configuration: values by dotted key, or
            ``key=value``.
        agents: The number of agents to ask, drawn with the run's seed; all if there are fewer.
        at: The last round before the second wave of questions; None for the last completed round.
        out: Parent folder; created if missing.
        llm: A client, or a function of the prompt; None: the configured LLM.
        on_answers: Called with the number of answers so far, and the total number.
        trust: As for `Interview`.

    Raises:
        BadInputError: If an argument cannot be used, or the run is not trusted; no folder is created.
        RunError: If the survey cannot continue. The folder keeps the answers, and the error has the attribute `result`.
        KeyboardInterrupt: As for RunError; the status is `interrupted`.
    """
    require_overrides(overrides)
    timer, records, overrides = RunTimer(), RunRecords(run_folder(run)), as_overrides(overrides)
    questionnaire, agents = _questionnaire(questions), require_whole_number(agents, "--agents", 1)
    last = records.rounds - 1 if at is None else require_whole_number(at, "--at")
    if not 0 <= last < records.rounds:
        raise DataError(f"--at: {records.run_dir} has no round {last} (rounds: 0 .. {records.rounds - 1})")
    recorded = read_llm_config(records.run, overrides, use="survey", uses_configured_llm=llm is None, trust=trust)
    config = make_llm_config(recorded, overrides, use="survey")
    check_output_folder(out)
    letter_client, text_client = survey_clients(questionnaire, recorded, overrides, llm)
    with closing(letter_client), closing(text_client):
        work = _Survey(records, questionnaire, config, last, agents, letter_client, text_client, timer, on_answers)
        try:
            result = run_to_completion(work, out, "survey", SURVEY_TABLES)
        except (RunBrokenError, RunInterruptedError) as stop:
            stop.result = stop.result and work.result(stop.result)
            raise
    return work.result(result)


def _questionnaire(questions: str | Path | Mapping[str, Any] | Questionnaire) -> Questionnaire:
    if isinstance(questions, Questionnaire):
        return questions
    if not isinstance(questions, str | Path | Mapping):
        raise DataError(f"questions: give a YAML file or its values, not {short_repr(questions)}")
    return make_questionnaire(questions) if isinstance(questions, Mapping) else read_questionnaire(questions)


@dataclass
class _Survey:
    """A survey (see `work.RunTask`)."""

    records: RunRecords
    questionnaire: Questionnaire
    config: Config
    at: int
    n_agents: int
    letter_client: LLMClient
    text_client: LLMClient
    timer: RunTimer
    on_answers: Callable[[int, int], object]

    def __post_init__(self) -> None:
        reasoner, self.streams = self.config.reasoner, Streams(self.config.seed)
        self.orders = reasoner.decision_orders if reasoner.needs_decisions else 0
        self.uses_letters = not self.orders and not answers_by_association(self.letter_client.client)
        self.rows = sample_users(self.records.users, self.n_agents, self.streams)
        n, questions = len(self.rows), self.questionnaire.questions
        self.replies = [Replies(question, n, self._first_options(question)) for question in questions]
        self.table = means_table(self.replies)
        self.done = 0

    def _first_options(self, question: SurveyQuestion) -> Ints | None:
        """Return the index of the option with the letter A for each agent; None without letters."""
        if not question.options or not self.uses_letters:
            return None
        return self.streams.integers(f"survey/letters/{question.id}", self.rows, len(question.options))

    @property
    def answerer(self) -> LLMClient:
        """The client for closed questions; both clients share its answer store."""
        return self.letter_client

    def _client(self, question: SurveyQuestion) -> LLMClient:
        return self.letter_client if question.options else self.text_client

    @property
    def total(self) -> int:
        """The number of expected answers."""
        return len(WAVES) * len(self.rows) * len(self.replies)

    @property
    def checkpoint_every(self) -> int:
        """0, because the ledger keeps the answers."""
        return 0

    def scope(self) -> str:
        """Return a name that surveys with the same questions, agents, round and seed share."""
        parts = [self.questionnaire.model_dump(mode="json"), self.rows.tolist(), self.at, self.config.seed]
        return f"{digest64(json.dumps(parts)):016x}"

    @property
    def failures(self) -> Counter[str]:
        """Missing answers, by reason."""
        return Counter(reason for reply in self.replies for reason in reply.failures.values())

    @property
    def fault(self) -> str:
        """Why a complete survey counts as failed; empty if it does not. Answers refused by a budget do not count."""
        failed = self.failures
        del failed["budget"]
        share, limit = failed.total() / max(1, self.total), self.config.reasoner.max_fallback_share
        if share <= limit:
            return ""
        reasons = ", ".join(f"{n} {why}" for why, n in failed.items())
        missing = f"{share:.1%} of {self.total} answers are missing ({reasons})"
        return f"{missing}; reasoner.max_fallback_share allows {limit:.1%}"

    def carry_out(self, folder: RunFolder) -> str:
        """Ask all questions in batches, agent by agent; stop if the first batch yields no answer."""
        last_error = ""
        for batch in batched(self._requests(), _REQUESTS_PER_SLOT * self.letter_client.slots):
            for client in dict.fromkeys((self.letter_client, self.text_client)):
                part = [item for item in batch if self._client(item[0].question) is client]
                answers = client.answer([request for *_, request in part])
                for (reply, wave, index, _), answer in zip(part, answers, strict=True):
                    if isinstance(answer, LLMFailureException):
                        reply.failures[wave, index] = answer.reason
                        last_error = str(answer)
                    else:
                        reply.store_answer(wave, index, answer)
            self.done += len(batch)
            self.on_answers(self.done, self.total)
            failed = self.failures
            if self.done < self.total and failed.total() == self.done and not failed["budget"]:
                return f"the first {self.done} answers are all missing: {last_error}"
        return self.fault

    def _requests(self) -> Iterator[tuple[Replies, int, int, LLMRequest[Any]]]:
        """Yield replies, wave, agent index and request; the tick is twice the question's index plus the wave."""
        for index, row in enumerate(self.rows.tolist()):
            waves = [self.records.snapshot(row, at) for at in (-1, self.at)]
            for question_index, reply in enumerate(self.replies):
                for wave, agent in enumerate(waves):
                    position = RunPosition(0, row, 2 * question_index + wave, agent.llm)
                    yield reply, wave, index, self._request(reply, index, agent, position)

    def _request(self, reply: Replies, index: int, agent: AgentSnapshot, position: RunPosition) -> LLMRequest[Any]:
        question, intro = reply.question, self.questionnaire.intro
        place: dict[str, Any] = {"component": "survey", "position": position}
        if not question.options:
            return LLMRequest(survey_prompt(agent, question, intro, None), str, bool, **place)
        if self.orders:
            return LLMRequest(*decision_prompt(agent, question, intro, self.orders), **place)
        if reply.first_options is None:
            score_form = AssociationScore(question.options, association_prompts(None, question, intro))
            return LLMRequest(association_prompts(agent, question, intro), score_form, **place)
        form = MultipleChoice(question.options, int(reply.first_options[index]))
        return LLMRequest(survey_prompt(agent, question, intro, form), form, **place)

    def progress(self) -> str:
        """Return the number of answers so far."""
        return f"answer {self.done}"

    def facts(self) -> dict[str, Any]:
        """Return the facts for the manifest."""
        llm = self.answerer
        return {
            "system": "survey",
            "run": str(self.records.run_dir),
            "seed": self.config.seed,
            "questions": self.questionnaire.model_dump(mode="json"),
            "agents": self.rows.tolist(),
            "at": {"before": -1, "after": self.at},
            "reasoner": self.config.reasoner.model_dump(mode="json"),
            "deliberation": self.config.deliberation.model_dump(mode="json"),
            "decided_by": llm.label,
            "llm": llm_facts(
                llm.kind,
                llm.client,
                llm.client,
                name=", ".join(client.name for client in llm.clients.values()),
                decoding={"closed": dict(llm.client.decoding), "open": dict(self.text_client.client.decoding)},
                ledger=llm.params.ledger,
            ),
        }

    def finish(self, folder: RunFolder, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Write the tables, and return the summary."""
        self.table = means_table(self.replies)
        folder.replace_table("answers", answer_columns(self.replies, self.rows))
        folder.replace_table("table", {str(name): column.to_numpy() for name, column in self.table.items()})
        write_csv(self.table, folder.path / "table.csv", float_format="%.6f")
        costs = self.timer.read()
        del costs["round_cpu_s"]
        return self.summary(folder.path, ending) | costs | {"notes": list(folder.notes)}

    def result(self, run: RunResult) -> SurveyResult:
        """Return the public result."""
        table = json.loads(self.table.to_json(orient="records", double_precision=15))
        return SurveyResult(run.run_dir, run.status, run.summary | {"table": table}, self.table)

    def summary(self, folder: Path, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Return the summary."""
        usage = Counter[str]()
        for client in dict.fromkeys((self.letter_client, self.text_client)):
            usage += client.usage
        failed = self.failures
        summary = {"folder": str(folder), "status": ending["status"], "run": str(self.records.run_dir)}
        summary |= {"error": ending["error"]} if "error" in ending else {}
        return summary | {
            "agents": len(self.rows),
            "of": int(self.records.users.sum()),
            "at": self.at,
            "llm": self.answerer.label,
            "note": self.answerer.note,
            "answers": self.done - failed.total(),
            "failures": dict(sorted(failed.items())),
            "calls": usage["calls"],
            "tokens": usage["prompt_tokens"] + usage["completion_tokens"],
            "questions": [self._facts(reply) for reply in self.replies],
        }

    def _facts(self, reply: Replies) -> dict[str, Any]:
        question = reply.question
        facts: dict[str, Any] = {"id": question.id, "ask": question.ask, "options": list(question.options)}
        facts["answered"] = {name: int(reply.answered_mask(wave).sum()) for wave, name in enumerate(WAVES)}
        if question.options:
            form = "decision" if self.orders else "association" if reply.first_options is None else "letters"
            return facts | {"asked_by": form, "by_letter": reply.letter_probabilities()}
        answered_both = np.flatnonzero(reply.answered_mask(0) & reply.answered_mask(1))[:3].tolist()
        return facts | {
            "asked_by": "noise" if answers_by_association(self.text_client.client) else "words",
            "some": [
                {"agent": int(self.rows[index]), "name": self.records.names[int(self.rows[index])]}
                | {name: reply.texts[wave][index] for wave, name in enumerate(WAVES)}
                for index in answered_both
            ],
        }
