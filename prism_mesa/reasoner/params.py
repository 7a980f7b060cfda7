"""Parameters of reasoners, with defaults, units and ranges."""

from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import Field, model_validator

from prism_mesa.errors import ConfigError, did_you_mean
from prism_mesa.llm.kinds import KINDS, SERVED, first_kind
from prism_mesa.llm.params import LLMParams
from prism_mesa.params import Params, UserPath, validate_params

if TYPE_CHECKING:
    type ReasonerKind = str
else:
    ReasonerKind = Literal["auto", *KINDS, "rule", "distilled"]
type SpendOn = Literal["open", "followed"]


class RuleParams(Params):
    """Weights of the rule, except the weights of personality."""

    slope: float = Field(
        1.5, ge=-100, le=100, description="Log-odds of engaging per half width of the agent's band (an assumption)"
    )
    velocity: float = Field(
        0.3, ge=-100, le=100, description="Log-odds of engaging per log(1 + velocity of the post) (an assumption)"
    )
    media: float = Field(
        default=0.3,
        ge=-100,
        le=100,
        description="Log-odds of engaging if the post has media (ln 1.35: tweets with photos had 35 % more retweets "
        "than the same accounts' average, with videos 28 % more, in 2 million tweets of verified US accounts; "
        "observational: Rogers 2014, blog.x.com, What fuels a Tweet's engagement)",
    )


LETTER_TOKENS: Final = 16
"""Maximum tokens of a one-letter answer, unless `max_answer_tokens` is set."""
_DEFAULT_TOKENS: Final[int] = LLMParams.model_fields["max_answer_tokens"].default


class ReasonerParams(LLMParams):
    """Parameters of reasoners: who decides open choices, and what replaces a missing answer."""

    kind: ReasonerKind = Field(
        default="rule",
        description="Who decides open choices; auto: Ollama if it runs and has the model, else the embedded LLM if "
        "installed, else the rule; distilled: a small model of an LLM's choices",
    )
    model_by: str | None = Field(
        None, description="Attribute that selects an agent's LLM (see model); null: drawn by the shares in model"
    )
    llm_share: float = Field(
        1.0, ge=0, le=1, description="Share of open choices that the LLM answers; a distilled model answers the others"
    )
    distilled: UserPath | None = Field(
        default=None, min_length=1, description="File or folder of a distilled model, made by prism distill RUN"
    )
    answer: Literal["choice", "probabilities", "decision"] | None = Field(
        default=None,
        description="Form of the LLM's answer; choice: one option; probabilities: of each option, from which agents "
        "draw; decision: probabilities from a decision model; null: choice (embedded LLM: probabilities)",
    )
    decision_orders: Literal[1, 2] = Field(
        default=1, description="Orders of options for a decision model; 2: average over both orders (two calls)"
    )
    reason: bool = Field(default=False, description="Ask for a sentence that explains each choice; needs answer=choice")
    persona: Literal["individual", "archetype"] | None = Field(
        default=None,
        description="Subject of prompts: the agent or its archetype; null: individual (embedded LLM: archetype)",
    )
    archetypes: int = Field(4, ge=1, le=1000, description="Number of archetypes into which agents are clustered")
    spend_on: SpendOn = Field(
        default="open",
        description="Choices on which a limit is spent first; open: near the middle of the band; followed: of agents "
        "with most followers",
    )
    attempts: int = Field(
        3, ge=1, le=100, description="Attempts at a question after temporary failures or useless answers"
    )
    fallback: Literal["first", "rule", "stay"] = Field(
        "first", description="What replaces a missing answer: the first option, the rule's choice, or stay (no move)"
    )
    max_fallback_share: float = Field(
        0.05, ge=0, le=1, description="Share of fallbacks above which a run fails; fallbacks after limits do not count"
    )
    asks_action: bool = Field(
        default=False, description="Also ask for the kind of engagement, instead of drawing it from propensities"
    )
    rule: RuleParams = Field(default=RuleParams(), description="Weights of the rule-based reasoner")

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if self.distilled is None and (self.kind == "distilled" or (self.llm_share < 1 and self.kind != "rule")):
            setting = "kind=distilled" if self.kind == "distilled" else f"llm_share={self.llm_share:g}"
            raise ValueError(f"{setting} needs reasoner.distilled, a model file: prism distill RUN makes one")
        if self.reason and self.answer not in (None, "choice"):
            raise ValueError(f"reason: answer={self.answer} cannot include a reason; set reasoner.answer=choice")
        return self

    @model_validator(mode="after")
    def _check_llms(self) -> Self:
        model, attribute = self.model, self.model_by
        if attribute is not None and not isinstance(model, dict):
            raise ValueError("model_by: needs model={VALUE: NAME, ...}, an LLM for each value; or set model_by=null")
        if isinstance(model, dict) and self.kind in KINDS and self.kind not in SERVED:
            raise ValueError(f"model: kind={self.kind} has one LLM; several need a server (kind={' or '.join(SERVED)})")
        for key, value in model.items() if isinstance(model, dict) else ():
            is_share, is_name = isinstance(value, float) and value > 0, isinstance(value, str) and bool(value)
            if not (is_share if attribute is None else is_name):
                allowed = "a share above 0" if attribute is None else "the name of an LLM"
                hint = (
                    "; to choose by an attribute, set model_by" if attribute is None and isinstance(value, str) else ""
                )
                raise ValueError(f"model: {key}: give {allowed}, not {value!r:.60}{hint}")
        llms = self.llms or (self.single_llm,)
        if isinstance(self.host, dict) and (others := self.host.keys() - llms):
            raise ValueError(f"host: {min(others)!r:.60} is not asked; model names {', '.join(llms)}")
        return self

    @property
    def llms(self) -> tuple[str, ...]:
        """Sorted names of the LLMs that share the agents; empty with a single LLM."""
        model = self.model if isinstance(self.model, dict) else {}
        return tuple(sorted({str(name) for name in (model.values() if self.model_by else model)}))

    def by_llm(self) -> dict[str, Self]:
        """Return the parameters of each LLM by name; the name of a single LLM is the empty string."""
        shared = {"kind": first_kind(self.kind), "model_by": None}
        return {llm: self.model_copy(update={**shared, "model": llm}) for llm in self.llms} or {"": self}

    @property
    def needs_decisions(self) -> bool:
        """Whether a decision model is asked."""
        return self.answer == "decision"

    @property
    def decoding(self) -> dict[str, Any]:
        """The decoding options of a chat client with these parameters."""
        is_letter = self.answer == "probabilities" and self.think is False and self.max_answer_tokens == _DEFAULT_TOKENS
        return super().decoding | ({"max_tokens": LETTER_TOKENS} if is_letter else {})


def with_options(params: ReasonerParams, options: dict[str, Any]) -> ReasonerParams:
    """Return a copy with some parameters changed. Raises ConfigError if an option is unknown or out of range."""
    for name in options:
        if name not in ReasonerParams.model_fields:
            hint = did_you_mean(name, ReasonerParams.model_fields)
            raise ConfigError(f"Reasoner: no parameter {name!r}.{hint}")
    return validate_params(ReasonerParams, {**params.model_dump(), **options}, "reasoner") if options else params
