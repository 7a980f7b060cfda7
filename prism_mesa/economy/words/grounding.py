"""Whether a text bears out what another reader says it says. It never reads a policy of its own out of a text."""

from collections.abc import Sequence
from difflib import get_close_matches
from math import isclose

from prism_mesa.economy.policy import AGAINST_NATIONS, Measure, Policy
from prism_mesa.economy.words.clauses import JUSTIFYING, Clause, clauses, sentences
from prism_mesa.economy.words.lexicon import LEXICON
from prism_mesa.economy.words.parser import parse_policy
from prism_mesa.economy.words.refusals import UnclearPolicyError, quoted
from prism_mesa.economy.words.sizes import Size, converted, spends_on
from prism_mesa.economy.words.texts import cleaned
from prism_mesa.economy.words.tokens import Token, tokens


def unsupported(policy: Policy, text: str, nation: str, nations: Sequence[str]) -> str:
    """Return why a policy that an LLM read out of a text is not what the text says, or ''.

    Every measure needs its instrument, direction, size and target in words of one sentence, reasons and purposes aside.
    Words that are nearly known ("rais") count here.
    """
    try:
        read = parse_policy(text, nation, nations)
    except UnclearPolicyError as error:
        if error.plain:
            return str(error)
        read = None
    terms = [known for token in tokens(cleaned(text), nations) for known in _mended(token)]
    grounds = [_grounds(sentence) for sentence in sentences(terms)]
    for measure in policy.measures:
        missing = [_missing(measure, said, nation, nations) for said in grounds] or ["a thing"]
        if all(missing):
            return f"{measure}: the text does not say {min(missing, key=len)}"
    if not policy.measures and not any(clause.has("hold", "same") for said in grounds for clause in said):
        return "the text does not say that all stays as it is"
    if read is not None and set(read.measures) != set(policy.measures):
        return f"the text says: {read}"
    return _left_out(policy, grounds) if read is None else ""


def _mended(token: Token) -> list[Token]:
    """Return an unknown word as the known one nearest to it, if there is one near; any other token as it is."""
    near = []
    if token.kind == "unknown" and len(token.text) >= 4:
        near = get_close_matches(token.text.lower(), LEXICON, n=1, cutoff=0.8)
    return [token._replace(kind=kind) for kind in LEXICON[near[0]]] if near else [token]


def _grounds(sentence: Sequence[Token]) -> list[Clause]:
    """Return the clauses of a sentence but its reasons and purposes."""
    return [clause for clause in clauses(sentence) if clause.opens not in JUSTIFYING]


def _missing(measure: Measure, grounds: Sequence[Clause], nation: str, nations: Sequence[str]) -> str:
    """Return what of a measure a sentence does not say, or ''."""
    said = Clause("start", tokens=[token for clause in grounds for token in clause.tokens])
    if measure.lever not in said.levers:
        return f"the instrument ({measure.lever.replace('_', ' ')})"
    if (measure.target is None) != (measure.lever not in AGAINST_NATIONS):
        return "such a target"
    named = any(token.kind == "nation" and token.text == measure.target for token in said.tokens)
    everyone = said.has("everyone", "all_imports") and measure.target in nations and measure.target != nation
    if measure.target is not None and not (named or everyone):
        return f"the target ({measure.target})"
    if measure.how == "by" and measure.size and not _worded(measure, said):
        return "the direction"
    return "" if _in_text(measure, said, grounds) else f"the size ({measure.size:g} {measure.unit.replace('_', ' ')})"


def _worded(measure: Measure, said: Clause) -> bool:
    up = said.has("up", "lift", "more", "new", "borrow", "stimulus") or spends_on(said)
    signed = any(token.kind == "size" and token.number < 0 for token in said.tokens)
    return up if measure.size > 0 else said.has("down", "drop") or signed


def _in_text(measure: Measure, said: Clause, grounds: Sequence[Clause]) -> bool:
    """Return whether a sentence has the size of a measure, in any unit that the instrument may be given in."""
    level = measure.how == "to"
    if level and measure.lever in AGAINST_NATIONS:
        if measure.size == 0 and said.has("remove", "lift", "drop", "block"):
            return True
        if measure.size == 100 and said.has("embargo", "block", "remove"):
            return True
    return any(_is_size_of(measure, token, clause) for clause in grounds for token in clause.tokens)


def _is_size_of(measure: Measure, token: Token, said: Clause) -> bool:
    if token.kind not in {"size", "number"} or (not token.unit and token.number != 0):
        return False
    try:
        number, unit = converted(measure.lever, Size(token.number, token.unit), said, level=measure.how == "to")
    except UnclearPolicyError:
        return False
    same = isclose(number, measure.size) or (measure.how == "by" and isclose(abs(number), abs(measure.size)))
    return same and unit == measure.unit


def _left_out(policy: Policy, grounds: Sequence[Sequence[Clause]]) -> str:
    """Return which clause of a text, with an instrument and a size, no measure stands for, or ''."""
    for clause in (clause for sentence in grounds for clause in sentence):
        sizes = [token for token in clause.tokens if token.kind == "size"]
        named = [measure for measure in policy.measures if measure.lever in clause.levers]
        stated = any(_is_size_of(measure, size, clause) for measure in named for size in sizes)
        if clause.levers and sizes and not stated:
            return f"the text also says {quoted(clause.tokens)}"
    return ""
