"""Keys of who decides and writes that were set and change nothing: a part of `without_effect.TABLE`."""

from collections.abc import Callable
from typing import Final

from prism_mesa.llm.budget import Budget
from prism_mesa.llm.kinds import KINDS_THAT_ASK
from prism_mesa.llm.params import WITHOUT_EFFECT, llm_keys
from prism_mesa.reasoner import ReasonerParams
from prism_mesa.social.known import Known
from prism_mesa.without_effect import WithoutEffect

type Row = WithoutEffect[Known]


def _llm(keys: str, when: Callable[[Known], bool], why: str) -> Row:
    """Return a row about keys of an LLM that the parameters name and that decides."""
    names = " ".join(f"reasoner.{name}" for name in keys.split())
    return WithoutEffect(names, lambda k: k.asks and when(k), why)


_ALL_OF_LLMS: Final = llm_keys(ReasonerParams)
_NO_WORDS: Final = "a decision model writes no words (reasoner.answer=decision)"
_IN_THE_RUN: Final = "in this run (interviews and surveys of it go by it)"

OF_DECIDERS: Final[tuple[Row, ...]] = (
    # who decides
    WithoutEffect(
        "reasoner.kind reasoner.distilled reasoner.llm_share reasoner.rule.* "
        + llm_keys(ReasonerParams, "max_fallback_share"),
        lambda k: k.given,
        "the reasoner that was given in Python has its own (Reasoner(..., attempts=2))",
    ),
    WithoutEffect(
        f"reasoner.kind reasoner.distilled reasoner.llm_share reasoner.rule.* {_ALL_OF_LLMS}",
        lambda k: not k.choices and not k.writes,
        "no choice is left open (statechart.oracle_enabled, statechart.chart), so nobody decides one",
    ),
    WithoutEffect(
        _ALL_OF_LLMS,
        lambda k: k.kind == "rule" and k.p.reasoner.kind == "rule",
        f"the rule decides {_IN_THE_RUN}, no LLM is asked: set reasoner.kind ({KINDS_THAT_ASK})",
    ),
    WithoutEffect(
        llm_keys(ReasonerParams, place=False),
        lambda k: k.kind == "rule" and k.idle_llm,
        f"the rule decides {_IN_THE_RUN}, as no LLM was found",
    ),
    WithoutEffect(
        llm_keys(ReasonerParams, "persona", place=False),
        lambda k: k.kind == "distilled" and k.idle_llm,
        f"the distilled model decides {_IN_THE_RUN}, no LLM is asked, and it has its own archetypes",
    ),
    WithoutEffect(
        "reasoner.model reasoner.host",
        lambda k: k.kind == "distilled" and k.p.reasoner.kind == "distilled",
        f"the distilled model decides {_IN_THE_RUN}, no LLM is asked",
    ),
    WithoutEffect(
        "reasoner.llm_share", lambda k: k.kind == "distilled", "the distilled model decides alone, as no LLM was found"
    ),
    WithoutEffect(
        "reasoner.rule.*",
        lambda k: k.kind == "distilled" and not k.unlearned,
        "the distilled model decides all that is open",
    ),
    WithoutEffect(
        "reasoner.distilled reasoner.llm_share reasoner.rule.* reasoner.answer reasoner.reason reasoner.persona "
        "reasoner.archetypes reasoner.fallback reasoner.temperature reasoner.max_answer_tokens",
        lambda k: not k.choices,
        "no choice is left open; texts go by deliberation.temperature and .max_answer_tokens",
    ),
    _llm("distilled", lambda k: k.p.reasoner.llm_share == 1, "reasoner.llm_share=1 leaves it no choice"),
    *(_llm(*row) for row in WITHOUT_EFFECT),
    _llm("temperature max_answer_tokens reason", lambda k: k.scores, "the embedded LLM gives scores (answer=choice)"),
    _llm(
        "seed attempts backoff_s",
        lambda k: k.scores and not k.writes,
        "the embedded LLM gives scores, the same each time (reasoner.answer=choice)",
    ),
    _llm("temperature max_answer_tokens", lambda k: k.answer == "decision", _NO_WORDS),
    _llm("seed think num_ctx", lambda k: k.answer == "decision" and not k.writes, _NO_WORDS),
    _llm("decision_orders", lambda k: k.answer != "decision", "only a decision has orders (reasoner.answer=decision)"),
    _llm("archetypes", lambda k: k.persona == "individual", "each agent asks for itself (reasoner.persona=archetype)"),
    _llm(
        "spend_on",
        lambda k: not Budget(k.p.reasoner).limited,
        "there is no limit to spend (reasoner.max_calls, ...)",
    ),
    _llm(
        "rule.*",
        lambda k: not k.scores and not k.unlearned and k.p.reasoner.fallback != "rule",
        "the LLM decides, and reasoner.fallback={0.p.reasoner.fallback} stands in for it, not the rule",
    ),
    WithoutEffect("reasoner.rule.media", lambda k: not k.media, "the posts have no media (posts.media_share)"),
    # how agents think and write
    WithoutEffect(
        "deliberation.conversation_tokens deliberation.max_seconds", lambda k: True, f"agents do not talk {_IN_THE_RUN}"
    ),
    WithoutEffect("deliberation.*", lambda k: not k.writes, f"no LLM writes {_IN_THE_RUN}: content={{0.p.content}}"),
)
