"""Warnings about a reasoner: an LLM's fallbacks and missing texts, and what a distilled model has not learned."""

from collections.abc import Mapping

from prism_mesa.errors import ConfigError, counted
from prism_mesa.reasoner import ReasonerParams, asks_llm, is_distilled
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.statechart import Statechart

KEY = "reasoner.max_fallback_share"


def shortfall(platform: Platform) -> str:
    """Return one line on fallbacks, or missing texts, beyond the allowed share; empty if it is within."""
    allowed, totals, written = allowed_share(platform), platform.totals, platform.written
    fallbacks = totals["fallback"] / max(1, totals["open"])
    if fallbacks > allowed:
        reasons, choices = _join(getattr(platform.reasoner, "reasons", {})), counted(totals["open"], "open choice")
        return f"{fallbacks:.1%} of {choices} were answered by the fallback ({reasons}); {KEY} allows {allowed:.1%}"
    missing = written["failed"] / max(1, written.total())
    if platform.writer is not None and missing > allowed:
        reasons, n = f"calls that failed: {_join(platform.writer.reasons)}", written.total()
        return f"{missing:.1%} of {n} texts were not written by the LLM ({reasons}); {KEY} allows {allowed:.1%}"
    return ""


def allowed_share(platform: Platform) -> float:
    """Return the allowed share of fallbacks: that of the platform, or of the reasoner where that is the default."""
    allowed = platform.params.reasoner.max_fallback_share
    is_default = allowed == ReasonerParams.model_fields["max_fallback_share"].default
    return platform.reasoner.params.max_fallback_share if is_default and asks_llm(platform.reasoner) else allowed


def _join(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {why}" for why, n in reasons.items())


def unlearned(reasoner: object, chart: Statechart, declared: Attributes) -> tuple[str, ...]:
    """Return a note on the choices that a distilled model has not learned, which the rule then decides.

    Raises:
        ConfigError: If it has learned nothing of what a chart leaves open.
    """
    if not is_distilled(reasoner):
        return ()
    asked = [options for options in WalkTables(chart, declared).option_sets if len(options) > 1]
    new = [options for options in asked if options not in reasoner.model.by_options]
    choices = "; ".join(" or ".join(options) for options in new)
    if new and len(new) == len(asked):
        raise ConfigError(
            f"reasoner.distilled: has learned nothing of what this chart leaves open ({choices}): distill a run of it"
        )
    return (f"reasoner.distilled: the rule decides what it has not learned: {choices}",) if new else ()
