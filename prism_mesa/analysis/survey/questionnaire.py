"""The questions of a survey, from a YAML file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from pydantic import Field, field_validator, model_validator

from prism_mesa.llm.decision import MAX_LEVELS
from prism_mesa.llm.multiple_choice import TOP_LOGPROBS
from prism_mesa.params import Params, validate_params
from prism_mesa.runs.yaml_text import Loader, read_yaml

MAX_OPTIONS: Final = TOP_LOGPROBS
"""Maximum number of options; servers return log-probabilities of this many letters."""


class SurveyQuestion(Params):
    """A closed question if there are options; otherwise an open question.

    Attributes:
        id: The question's name in tables.
        ask: The wording.
        options: 2 to 20 different texts of one line each; none for an open question.
        scale: Whether the options are levels of a scale, lowest first (at most 10); used by decision models only.
    """

    id: str = Field(pattern=r"^[\w.-]{1,60}$")
    ask: str = Field(max_length=2000)
    options: tuple[str, ...] = ()
    scale: bool = False

    @field_validator("ask")
    @classmethod
    def _check_ask(cls, ask: str) -> str:
        if not ask.strip():
            raise ValueError("must say something: the question in words")
        return ask.strip()

    @field_validator("options", mode="before")
    @classmethod
    def _check_options(cls, options: Any) -> Any:
        if options == ():
            return options
        is_list = isinstance(options, list | tuple) and all(isinstance(text, str) for text in options)
        texts = tuple(" ".join(text.split()) for text in options) if is_list else ()
        different = {text.casefold() for text in texts} - {""}
        if not 2 <= len(texts) <= MAX_OPTIONS or len(different) < len(texts):
            raise ValueError(f"must be a list of 2 to {MAX_OPTIONS} different texts; an open question has no options")
        return texts

    @model_validator(mode="after")
    def _check_scale(self) -> Self:
        if self.scale and not 2 <= len(self.options) <= MAX_LEVELS:
            raise ValueError(f"scale: needs 2 to {MAX_LEVELS} options, lowest first")
        return self


class Questionnaire(Params):
    """The questions for each agent, in order.

    Attributes:
        intro: A text before every question.
    """

    intro: str = Field("", max_length=4000)
    questions: tuple[SurveyQuestion, ...] = Field(min_length=1, max_length=1000)

    @field_validator("intro")
    @classmethod
    def _strip_intro(cls, intro: str) -> str:
        return intro.strip()

    @model_validator(mode="after")
    def _check_ids(self) -> Self:
        ids = [question.id for question in self.questions]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"questions: id {name!r} appears twice; give each question its own id")
        return self


class _TextLoader(Loader):
    """A loader that reads every unquoted YAML value as a string, such as the options ``yes`` and ``5``."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012


def read_questionnaire(path: str | Path) -> Questionnaire:
    """Return the questions of a YAML file with the keys of `Questionnaire`.

    Raises ConfigError if the file is not valid; the message names the first error and its question (from 0).
    """
    file = Path(path)
    return make_questionnaire(read_yaml(file, _TextLoader, kind="questions file", hint=": questions"), str(file))


def make_questionnaire(values: Mapping[str, Any], where: str = "questions") -> Questionnaire:
    """Return the questions in a mapping; errors as in `read_questionnaire`."""
    return validate_params(Questionnaire, values, where)
