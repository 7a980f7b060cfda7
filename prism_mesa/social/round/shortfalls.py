"""What a reasoner does not give a model.

Of an LLM: choices that fell back, and texts that were not written, beyond what is allowed. Of a distilled model: what
it has not learned to choose.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from prism_mesa.errors import ConfigError
from prism_mesa.reasoner import DistilledReasoner, Reasoner, ReasonerParams
from prism_mesa.statechart import AgentState

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

KEY = "reasoner.max_fallback_share"


def shortfall(model: "SocialModel") -> str:
    """Return in one line what an LLM did not give beyond the share that is allowed; empty if it is within."""
    return _of_choices(model) or _of_texts(model)


def allowed_share(model: "SocialModel") -> float:
    """Return the share of fallbacks that is allowed: the model's own, or where that is the default the reasoner's."""
    own = model.params.reasoner.max_fallback_share
    is_default = own == ReasonerParams.model_fields["max_fallback_share"].default
    return model.reasoner.params.max_fallback_share if is_default and isinstance(model.reasoner, Reasoner) else own


def _of_choices(model: "SocialModel") -> str:
    share, allowed = model.totals["fallback"] / max(1, model.totals["open"]), allowed_share(model)
    if share <= allowed:
        return ""
    reasons = _counted(getattr(model.reasoner, "reasons", {}))
    return (
        f"{share:.1%} of {model.totals['open']} open choices were answered by the fallback ({reasons}); {KEY} allows "
        f"{allowed:.1%}"
    )


def _of_texts(model: "SocialModel") -> str:
    share, allowed = model.written["failed"] / max(1, model.written.total()), allowed_share(model)
    if model.writer is None or share <= allowed:
        return ""
    return (
        f"{share:.1%} of {model.written.total()} texts were not written by the LLM (calls that failed: "
        f"{_counted(model.writer.reasons)}); {KEY} allows {allowed:.1%}"
    )


def _counted(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {why}" for why, n in reasons.items())


def unlearned(reasoner: object, option_sets: Sequence[tuple[AgentState, ...]]) -> tuple[str, ...]:
    """Return in words between what a distilled model has not learned to choose, which the rule then decides.

    Raises:
        ConfigError: If it has learned nothing of what a chart leaves open.
    """
    asked = [options for options in option_sets if len(options) > 1]
    if not isinstance(reasoner, DistilledReasoner) or not asked:
        return ()
    new = [options for options in asked if options not in reasoner.model.by_options]
    said = "; ".join(" or ".join(options) for options in new)
    if len(new) == len(asked):
        raise ConfigError(
            f"reasoner.distilled: has learned nothing of what this chart leaves open ({said}): distill a run of it"
        )
    return (f"reasoner.distilled: the rule decides what it has not learned: {said}",) if new else ()
