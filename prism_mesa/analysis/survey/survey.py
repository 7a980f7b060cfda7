"""A survey of the agents of a finished run: each is asked the same questions as it was before the run and after it.

Before, an agent has its profile only; after, it also remembers what it did and noted. Nothing is run again, and the
run's folder is only read. What an LLM says in an agent's place is no forecast of what people would say.

The embedded SmolLM2-135M names letters blindly (99 % of the variance of what it says lies between letters; asked which
of five topics interests it most, an agent's own interests had AUC .42, chance .5), so it is asked by association: how
much likelier do its profile and its activities make each option (`AssociationScore`)? Measured on a run of 150 agents
and 6 rounds with that question: five wordings, one without names, and that one with profile and activities read apart
were tried on 20 agents. Of 60 others the own interests had AUC .975 before and .936 after the run, and topics of its
activities gained 1.67 nats on those of none (standard error .18; 34 agents, 97 % of them in this direction). Read in
one text, activities crowded out the interests: the same 20 agents lost .64 nats there (standard error .49).

What this cannot tell: it is association with words, not opinion. Profiles name interests word for word, and posts come
close. Attitudes it gets wrong: asked how much it trusts what others post, who liked "It is all lies." says `not at all`
with .32, and who liked "I believe every word." with .69 (last words of two posts, tried by hand once). And any posts,
whatever about, make some words likelier (sport by 1.0 nats, cooking by -.9), so a mean change may come from the wording
of the options: `not at all` rose by .15 in 20 agents, with an interval of .10 to .20. Ask for topics, compare agents.
All other LLMs are asked by letters; `Replies.by_letter` shows how blind they are.
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
import numpy.typing as npt
import pandas as pd

from prism_mesa.analysis.llm import as_overrides, config_to_ask, played_config
from prism_mesa.analysis.survey.questionnaire import Questionnaire, SurveyQuestion, questionnaire_of, read_questionnaire
from prism_mesa.analysis.survey.respondents import associates, association, decision, sampled, speakers, survey_prompt
from prism_mesa.analysis.survey.results import SURVEY_TABLES, WAVES, Replies, answers_of, table_of
from prism_mesa.errors import DataError, LLMFailureException, counted, one_line
from prism_mesa.llm import ChatClient, LLMClient, LLMRequest, RunPosition
from prism_mesa.llm.association import AssociationScore
from prism_mesa.llm.clients.base import PromptFunction
from prism_mesa.llm.multiple_choice import MultipleChoice
from prism_mesa.params import require_overrides, require_whole_number, shown
from prism_mesa.runs.archive import AgentSnapshot, RunRecords
from prism_mesa.runs.config import Config
from prism_mesa.runs.lifecycle import RunBrokenError, RunInterruptedError, RunResult, run_to_completion
from prism_mesa.runs.manifest import llm_facts
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.runs.records.table_checks import write_csv
from prism_mesa.runs.rounds import RunTimer
from prism_mesa.runs.run_files import check_out, folder_of
from prism_mesa.streams import Streams, digest64

AGENTS: Final = 100
_PER_SLOT: Final = 4


@dataclass(frozen=True, repr=False)
class SurveyResult:
    """A survey that has ended.

    Attributes:
        folder: Where it is kept.
        status: `done`, `failed` if too many answers did not come, or `interrupted`.
        summary: What ``prism survey --json`` prints.
        table: See `results.table_of`.
    """

    folder: Path
    status: str
    summary: dict[str, Any]
    table: pd.DataFrame

    @one_line
    def __repr__(self) -> str:
        asked, agents = len(self.summary["questions"]), self.summary["agents"]
        return (
            f"<SurveyResult {self.status}: {counted(asked, 'question')} to {counted(agents, 'agent')}, {self.folder}>"
        )


def survey(
    run: str | os.PathLike[str],
    questions: str | Path | Mapping[str, Any] | Questionnaire,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    *,
    agents: int = AGENTS,
    at: int | None = None,
    out: str | Path = "results",
    llm: ChatClient | PromptFunction | None = None,
    on_answers: Callable[[int, int], object] = lambda done, total: None,
    trust: bool = False,
) -> SurveyResult:
    """Ask agents of a run the same questions before and after it, and keep what they say in ``out/survey-<time>``.

    The letters of a closed question's options are turned by a keyed draw of the agent, the same before and after (see
    `MultipleChoice`). The embedded SmolLM2 is asked by association, without letters (see `AssociationScore`), and with
    ``reasoner.answer=decision`` a decision model weighs the options (see `llm.decision`).

    Args:
        run: A result, or the run's folder, which is only read.
        questions: A YAML file, or what one holds: ``{"questions": [{"id": ..., "ask": ..., "options": [...]}]}``.
        overrides: ``reasoner.*`` and ``deliberation.*`` on top of the run's configuration: values by dotted key, or
            ``key=value``.
        agents: How many are asked, drawn by the run's seed; all if there are no more. At least 1.
        at: The last round that counts as the run; None: the last that was completed.
        out: Parent folder; made if missing.
        llm: Who is asked, a client or a function of the prompt; None: what the configuration names.
        on_answers: Called with how many answers are there, and of how many.
        trust: As for `Interview`.

    Raises:
        BadInputError: If something given is of no use, or the run is not trusted; no folder is made.
        RunError: If the survey cannot go on; its folder says so, and keeps what was answered. The same holds for
            KeyboardInterrupt, after which it says `interrupted`. Both have the attribute `result`.
    """
    require_overrides(overrides)
    watch, records, overrides = RunTimer(), RunRecords(folder_of(run)), as_overrides(overrides)
    asked, agents = _questionnaire(questions), require_whole_number(agents, "--agents", 1)
    last = _last_round(records, at)
    config = config_to_ask(records.run, overrides, of="survey", asks=llm is None, trust=trust)
    played = played_config(config, overrides, of="survey")
    check_out(out)
    letters, words = speakers(asked, config, overrides, llm)
    with closing(letters), closing(words):
        own = _Survey(records, asked, played, last, agents, letters, words, watch, on_answers)
        try:
            result = run_to_completion(own, out, "survey", SURVEY_TABLES)
        except (RunBrokenError, RunInterruptedError) as stop:
            stop.result = stop.result and own.result(stop.result)
            raise
    return own.result(result)


def _last_round(records: RunRecords, at: int | None) -> int:
    """Return the last round that counts as the run."""
    last = records.rounds - 1 if at is None else require_whole_number(at, "--at")
    if not 0 <= last < records.rounds:
        raise DataError(f"--at: no round {last} in {records.run_dir} (rounds: 0 .. {records.rounds - 1})")
    return last


def _questionnaire(given: str | Path | Mapping[str, Any] | Questionnaire) -> Questionnaire:
    if isinstance(given, Questionnaire):
        return given
    if not isinstance(given, str | Path | Mapping):
        raise DataError(f"questions: give a YAML file, or what one holds, not {shown(given)}")
    return questionnaire_of(given) if isinstance(given, Mapping) else read_questionnaire(given)


class _Survey:
    """A survey on its way, as the work of a run (see `work.RunTask`)."""

    def __init__(
        self,
        records: RunRecords,
        asked: Questionnaire,
        played: Config,
        at: int,
        agents: int,
        letters: LLMClient,
        words: LLMClient,
        watch: RunTimer,
        on_answers: Callable[[int, int], object],
    ) -> None:
        self.records, self.questionnaire, self.played, self.at = records, asked, played, at
        self.letters, self.words = letters, words
        self.watch, self.on_answers = watch, on_answers
        self.orders = played.reasoner.decision_orders if played.reasoner.decides else 0
        self.lettered = not self.orders and not associates(letters.client)
        self.streams = Streams(played.seed)
        self.rows = sampled(records.users, agents, self.streams)
        self.replies = [Replies(question, len(self.rows), self._firsts(question)) for question in asked.questions]
        self.table = table_of(self.replies)
        self.done = 0

    def _firsts(self, question: SurveyQuestion) -> npt.NDArray[np.int64] | None:
        """Return for each agent which option is lettered A, or None if there are no letters."""
        if not question.options or not self.lettered:
            return None
        return self.streams.integers(f"survey/letters/{question.id}", self.rows, len(question.options))

    @property
    def asked(self) -> LLMClient:
        """Who keeps the answer store, which both clients share."""
        return self.letters

    @property
    def total(self) -> int:
        """How many answers there are to be."""
        return len(WAVES) * len(self.rows) * len(self.replies)

    @property
    def checkpoint_every(self) -> int:
        """0: what was answered stands in the ledger, and a survey is short."""
        return 0

    def scope(self) -> str:
        """Return a name for all surveys in which the same is asked."""
        asked = self.questionnaire.model_dump(mode="json")
        for question in asked["questions"]:
            if not question["scale"]:  # older surveys lack this key
                del question["scale"]
        parts = [asked, self.rows.tolist(), self.at, self.played.seed]
        return f"{digest64(json.dumps(parts)):016x}"

    @property
    def failures(self) -> Counter[str]:
        """Answers that did not come, by reason."""
        return Counter(reason for reply in self.replies for reason in reply.failures.values())

    @property
    def fault(self) -> str:
        """Why it counts as failed although it came to its end, or an empty string; leftovers of limits are apart."""
        failed = self.failures
        del failed["budget"]
        share, most = failed.total() / max(1, self.total), self.played.reasoner.max_fallback_share
        if share <= most:
            return ""
        reasons = ", ".join(f"{n} {why}" for why, n in failed.items())
        told = f"{share:.1%} of {self.total} answers did not come ({reasons})"
        return f"{told}; reasoner.max_fallback_share allows {most:.1%}"

    def carry_out(self, folder: RunFolder) -> str:
        """Ask all questions, agent by agent and in batches; stop if no answer of the first batch came."""
        last = ""
        for batch in batched(self._wanted(), _PER_SLOT * self.letters.slots):
            for client in dict.fromkeys((self.letters, self.words)):
                own = [one for one in batch if self._who(one[0]) is client]
                for (reply, wave, place, _), answer in zip(own, client.answer([w for *_, w in own]), strict=True):
                    if isinstance(answer, LLMFailureException):
                        reply.failures[wave, place] = answer.reason
                        last = str(answer)
                    else:
                        reply.keep(wave, place, answer)
            self.done += len(batch)
            self.on_answers(self.done, self.total)
            failed = self.failures
            if self.done < self.total and failed.total() == self.done and not failed["budget"]:
                return f"none of the first {self.done} answers came: {last}"
        return self.fault

    def _who(self, reply: Replies) -> LLMClient:
        return self.letters if reply.question.options else self.words

    def _wanted(self) -> Iterator[tuple[Replies, int, int, LLMRequest[Any]]]:
        """Yield whose answer to what is wanted; its tick in the ledger is twice the question's place, plus the wave."""
        for place, row in enumerate(self.rows.tolist()):
            waves = [self.records.snapshot(row, at) for at in (-1, self.at)]
            for number, reply in enumerate(self.replies):
                for wave, agent in enumerate(waves):
                    at = RunPosition(0, row, 2 * number + wave, agent.llm)
                    yield reply, wave, place, self._sheet(reply, place, agent, at)

    def _sheet(self, reply: Replies, place: int, agent: AgentSnapshot, at: RunPosition) -> LLMRequest[Any]:
        """Return what is wanted of an agent."""
        question, intro = reply.question, self.questionnaire.intro
        if not question.options:
            return LLMRequest(survey_prompt(agent, question, intro, None), str, bool, component="survey", place=at)
        if self.orders:
            return LLMRequest(*decision(agent, question, intro, self.orders), component="survey", place=at)
        if reply.firsts is None:
            likelier = AssociationScore(question.options, association(None, question, intro))
            return LLMRequest(association(agent, question, intro), likelier, component="survey", place=at)
        form = MultipleChoice(question.options, int(reply.firsts[place]))
        return LLMRequest(survey_prompt(agent, question, intro, form), form, component="survey", place=at)

    def where(self) -> str:
        """Return how many answers there are."""
        return f"answer {self.done}"

    def facts(self) -> dict[str, Any]:
        """Return what is known before anybody is asked."""
        return {
            "system": "survey",
            "run": str(self.records.run_dir),
            "seed": self.played.seed,
            "questions": self.questionnaire.model_dump(mode="json"),
            "agents": self.rows.tolist(),
            "at": {"before": -1, "after": self.at},
            "reasoner": self.played.reasoner.model_dump(mode="json"),
            "deliberation": self.played.deliberation.model_dump(mode="json"),
            "decided_by": self.asked.label,
            "llm": self._llm(),
        }

    def _llm(self) -> dict[str, Any]:
        client, names = self.asked.client, [own.name for own in self.asked.clients.values()]
        decoding = {"closed": dict(client.decoding), "open": dict(self.words.client.decoding)}
        told = {"name": ", ".join(names), "decoding": decoding, "ledger": self.asked.params.ledger}
        return llm_facts(self.asked.kind, client, client, **told)

    def finish(self, folder: RunFolder, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Write the tables, and return the summary."""
        self.table = table_of(self.replies)
        folder.write_whole("answers", answers_of(self.replies, self.rows))
        folder.write_whole("table", {str(name): column.to_numpy() for name, column in self.table.items()})
        write_csv(self.table, folder.path / "table.csv", float_format="%.6f")
        took = self.watch.read()
        del took["round_cpu_s"]
        return self.summary(folder.path, ending) | took | {"notes": list(folder.notes)}

    def result(self, run: RunResult) -> SurveyResult:
        """Return what `survey` returns."""
        table = json.loads(self.table.to_json(orient="records", double_precision=15))
        return SurveyResult(run.run_dir, run.status, run.summary | {"table": table}, self.table)

    def summary(self, folder: Path, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is to be said of it in short."""
        usage = Counter[str]()
        for client in dict.fromkeys((self.letters, self.words)):
            usage += client.usage
        failed = self.failures
        told = {"folder": str(folder), "status": ending["status"], "run": str(self.records.run_dir)}
        told |= {"error": ending["error"]} if "error" in ending else {}
        return told | {
            "agents": len(self.rows),
            "of": int(self.records.users.sum()),
            "at": self.at,
            "llm": self.asked.label,
            "note": self.asked.note,
            "answers": self.done - failed.total(),
            "failures": dict(sorted(failed.items())),
            "calls": usage["calls"],
            "tokens": usage["prompt_tokens"] + usage["completion_tokens"],
            "questions": [self._facts(reply) for reply in self.replies],
        }

    def _facts(self, reply: Replies) -> dict[str, Any]:
        told: dict[str, Any] = {"id": reply.question.id, "ask": reply.question.ask}
        told["options"] = list(reply.question.options)
        told["answered"] = {name: int(reply.answered(wave).sum()) for wave, name in enumerate(WAVES)}
        if reply.question.options:
            asked = "decision" if self.orders else "association" if reply.firsts is None else "letters"
            return told | {"asked_by": asked, "by_letter": reply.by_letter()}
        both = np.flatnonzero(reply.answered(0) & reply.answered(1))[:3].tolist()
        return told | {
            "asked_by": "noise" if associates(self.words.client) else "words",
            "some": [
                {"agent": int(self.rows[place]), "name": self.records.names[int(self.rows[place])]}
                | {name: reply.texts[wave][place] for wave, name in enumerate(WAVES)}
                for place in both
            ],
        }
