"""What a reasoner does not give a platform.

Of an LLM: choices that fell back, and texts that were not written, beyond what is allowed. Of a distilled model: what
it has not learned to choose.
"""

from collections.abc import Mapping

from prism_mesa.errors import ConfigError, counted
from prism_mesa.reasoner import ReasonerParams, asks_llm, is_distilled
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.walk_tables import WalkTables
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.statechart import Statechart

KEY = "reasoner.max_fallback_share"


def shortfall(platform: Platform) -> str:
    """Return in one line what an LLM did not give beyond the share that is allowed; empty if it is within."""
    return _of_choices(platform) or _of_texts(platform)


def allowed_share(platform: Platform) -> float:
    """Return the share of fallbacks that is allowed, by the platform or, where it has the default, the reasoner's."""
    own = platform.params.reasoner.max_fallback_share
    is_default = own == ReasonerParams.model_fields["max_fallback_share"].default
    return platform.reasoner.params.max_fallback_share if is_default and asks_llm(platform.reasoner) else own


def _of_choices(platform: Platform) -> str:
    share, allowed = platform.totals["fallback"] / max(1, platform.totals["open"]), allowed_share(platform)
    if share <= allowed:
        return ""
    reasons, n = _counted(getattr(platform.reasoner, "reasons", {})), counted(platform.totals["open"], "open choice")
    return f"{share:.1%} of {n} were answered by the fallback ({reasons}); {KEY} allows {allowed:.1%}"


def _of_texts(platform: Platform) -> str:
    share, allowed = platform.written["failed"] / max(1, platform.written.total()), allowed_share(platform)
    if platform.writer is None or share <= allowed:
        return ""
    return (
        f"{share:.1%} of {platform.written.total()} texts were not written by the LLM (calls that failed: "
        f"{_counted(platform.writer.reasons)}); {KEY} allows {allowed:.1%}"
    )


def _counted(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {why}" for why, n in reasons.items())


def unlearned(reasoner: object, chart: Statechart, declared: Attributes) -> tuple[str, ...]:
    """Return in words between what a distilled model has not learned to choose, which the rule then decides.

    Raises:
        ConfigError: If it has learned nothing of what a chart leaves open.
    """
    if not is_distilled(reasoner):
        return ()
    asked = [options for options in WalkTables(chart, declared).option_sets if len(options) > 1]
    if not asked:
        return ()
    new = [options for options in asked if options not in reasoner.model.by_options]
    said = "; ".join(" or ".join(options) for options in new)
    if len(new) == len(asked):
        raise ConfigError(
            f"reasoner.distilled: has learned nothing of what this chart leaves open ({said}): distill a run of it"
        )
    return (f"reasoner.distilled: the rule decides what it has not learned: {said}",) if new else ()
