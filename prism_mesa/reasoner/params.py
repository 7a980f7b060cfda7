"""The parameters of the oracle, with their defaults, units and ranges. Nothing here is acted upon."""

from typing import Literal

from pydantic import Field

from prism_mesa.params import Params

type Fallback = Literal["first", "rule", "stay"]


class RuleParams(Params):
    """The two weights of the rule that no data stand behind."""

    slope: float = Field(
        default=1.5,
        ge=-100,
        le=100,
        description="Log-odds of engaging per half width of the agent's band (an assumption)",
    )
    velocity: float = Field(
        default=0.3,
        ge=-100,
        le=100,
        description="Log-odds of engaging per log(1 + velocity of the post) (an assumption)",
    )


class ReasonerParams(Params):
    """Who decides what the chart leaves open, and what happens when nobody answers."""

    kind: Literal["auto", "ollama", "rule"] = Field(
        default="rule",
        description="Who answers; 'auto' is Ollama where it answers and has the model, else the rule",
    )
    model: str = Field(default="llama3.2", min_length=1, description="Name of the LLM on the server")
    host: str = Field(default="http://127.0.0.1:11434", min_length=1, description="Address of the Ollama server")
    timeout_s: float = Field(
        default=30.0,
        gt=0,
        description="Seconds after which a question counts as not answered",
    )
    temperature: float = Field(
        default=0.0,
        ge=0,
        description="Sampling temperature of the LLM; 0 takes the likeliest",
    )
    seed: int = Field(default=0, ge=0, lt=2**31, description="Sampling seed of the LLM (not the run's seed)")
    max_concurrency: int = Field(default=4, ge=1, description="Questions that are out at the same time")
    fallback: Fallback = Field(
        default="first",
        description="What stands in for an answer that did not come: the 'first' option, the 'rule', or to 'stay'",
    )
    max_fallback_share: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="Share of fallbacks among the answers above which a run ends as failed",
    )
    asks_action: bool = Field(
        default=False,
        description="Ask also which action a finished draft becomes, instead of drawing it from propensities",
    )
    rule: RuleParams = Field(default=RuleParams(), description="Weights of the rule-based reasoner")
