"""The questions of a survey, as a YAML file has them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from pydantic import Field, field_validator, model_validator

from prism_mesa.errors import ConfigError, did_you_mean
from prism_mesa.llm.decision import MOST_LEVELS
from prism_mesa.llm.multiple_choice import TOP_LOGPROBS
from prism_mesa.params import Params, validated
from prism_mesa.runs.yaml_text import Loader, read_yaml

MOST_OPTIONS: Final = TOP_LOGPROBS
"""An LLM tells numbers of so many letters."""

MOST_QUESTIONS: Final = 1000


class SurveyQuestion(Params):
    """A question: closed, if it has options to choose from, else open.

    Attributes:
        id: What tables call it.
        ask: The question in words.
        options: 2..20 different texts, each on one line; none for an open question.
        scale: Whether the options are levels of a scale, lowest first, at most 10; only decision models use it.
    """

    id: str = Field(pattern=r"^[\w.-]{1,60}$")
    ask: str = Field(max_length=2000)
    options: tuple[str, ...] = ()
    scale: bool = False

    @field_validator("ask")
    @classmethod
    def _asks_something(cls, ask: str) -> str:
        if not ask.strip():
            raise ValueError("must say something: the question in words")
        return ask.strip()

    @field_validator("options", mode="before")
    @classmethod
    def _are_texts(cls, given: Any) -> Any:
        if given == ():
            return given
        allowed = f"must be a list of 2 to {MOST_OPTIONS} different texts (leave it out for an open question)"
        if not isinstance(given, list | tuple) or not all(isinstance(text, str) and text.strip() for text in given):
            raise ValueError(allowed)
        texts = tuple(" ".join(text.split()) for text in given)
        if not 2 <= len(texts) <= MOST_OPTIONS or len({text.casefold() for text in texts}) < len(texts):
            raise ValueError(allowed)
        return texts

    @model_validator(mode="after")
    def _has_levels(self) -> Self:
        if self.scale and not 2 <= len(self.options) <= MOST_LEVELS:
            raise ValueError(f"scale: needs 2 to {MOST_LEVELS} options, lowest first")
        return self


class Questionnaire(Params):
    """What is asked of everybody, in this order.

    Attributes:
        intro: What is said before every question.
    """

    intro: str = Field("", max_length=4000)
    questions: tuple[SurveyQuestion, ...]

    @field_validator("intro")
    @classmethod
    def _bare(cls, intro: str) -> str:
        return intro.strip()

    @model_validator(mode="after")
    def _are_apart(self) -> Self:
        fault = _fault([question.id for question in self.questions])
        if fault:
            raise ValueError(fault)
        return self


def _fault(ids: Sequence[Any]) -> str:
    """Return what is wrong with the questions as a list, or an empty string."""
    if not ids:
        return "there are none; give at least one, with id and ask (and options, if it is closed)"
    twice = next((name for place, name in enumerate(ids) if name in ids[:place]), None)
    return "" if twice is None else f"id {twice!r} stands twice; each question needs an id of its own"


class _Words(Loader):
    """YAML in which every bare word is a text: ``yes`` and ``5`` are options, not a truth and a number."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


def read_questionnaire(path: str | Path) -> Questionnaire:
    """Return the questions of a YAML file: ``questions`` (each with `id`, `ask`, and `options` if closed), ``intro``.

    Raises:
        ConfigError: One line for the first fault: the file, the question, and what is allowed.
    """
    file = Path(path)
    return questionnaire_of(read_yaml(file, _Words, what="questions file", hint=": questions"), str(file))


def questionnaire_of(values: Mapping[str, Any], where: str = "questions") -> Questionnaire:
    """Return nested values as questions; errors as in `read_questionnaire`."""
    asked = values.get("questions")
    if asked is None and (others := values.keys() - {"intro"}):
        other = min(map(str, others))
        raise ConfigError(f"{where}: {other[:60]!r} is no key (questions, intro).{did_you_mean(other, ['questions'])}")
    if not isinstance(asked, list):
        missing = "are missing" if asked is None else "must be a list"
        raise ConfigError(f"{where}: questions: {missing}; each has id and ask, and options if it is closed")
    if len(asked) > MOST_QUESTIONS:
        raise ConfigError(f"{where}: questions: {len(asked):,} are too many (at most {MOST_QUESTIONS:,})")
    for place, one in enumerate(asked, start=1):
        if not isinstance(one, Mapping):
            raise ConfigError(f"{where}: question {place}: must have keys (id, ask, options), not {str(one)[:60]!r}")
        name = f" {str(one['id'])[:60]!r}" if one.get("id") else ""
        validated(SurveyQuestion, one, f"{where}: question {place}{name}")
    fault = _fault([one["id"] for one in asked])
    if fault:
        raise ConfigError(f"{where}: questions: {fault}")
    return validated(Questionnaire, values, where)
