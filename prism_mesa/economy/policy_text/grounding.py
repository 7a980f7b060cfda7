"""Whether a text bears out what another reader says it says."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from math import isclose

from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS, Measure, Policy, in_words
from prism_mesa.economy.policy_text.clauses import JUSTIFYING, NAMES, Clause, clauses, hides, sentences
from prism_mesa.economy.policy_text.lexicon import AIMS, HARMLESS, LEXICON, VERBS
from prism_mesa.economy.policy_text.parser import clash, parse_policy
from prism_mesa.economy.policy_text.refusals import UnclearPolicyError, quoted
from prism_mesa.economy.policy_text.sizes import moves, size_of
from prism_mesa.economy.policy_text.standing import Standing, refuse_disagreement
from prism_mesa.economy.policy_text.targets import roles
from prism_mesa.economy.policy_text.texts import cleaned
from prism_mesa.economy.policy_text.tokens import Token, tokens

_VOCABULARY = sorted({word for phrase in LEXICON for word in phrase.split()} | {"percent", "percentage", "point"})
_DOUBTFUL = tuple(
    """negation odd jest hedged condition schedule alternative range money absurd absent vague stranger product outcome
    between""".split()
)
_CARRIED: tuple[frozenset[str], ...] = (
    frozenset({*LEVERS, "trade"}),
    VERBS | {"more", "new", "stimulus"},
    NAMES | {"all_imports"},
)
"""What a clause takes over from the clause before unless it says it: the instrument, what is done, the target."""

_BORNE_OUT = 6


def unsupported(
    policy: Policy, text: str, nation: str, nations: Sequence[str], standing: Standing | None = None
) -> str:
    """Return why a policy that an LLM read out of a text is not what the text says, or ''.

    Every measure needs its instrument, direction, size and target in words of one clause, or of the clauses before it
    that it goes on from, and every such clause its measure. Words that are nearly known ("rais") count. Any other word
    may turn the sense round: with one, nothing is borne out, apart from reasons, purposes and harmless words.
    `standing` is as in `parse_policy`: what else a text says of where an instrument stands has to be so.
    """
    try:
        read = parse_policy(text, nation, nations, standing)
    except UnclearPolicyError as error:
        if error.plain:
            return str(error)
    else:
        return "" if set(read.measures) == set(policy.measures) else f"the text says: {read}"
    said: list[Clause] = []
    for sentence in sentences(tokens(_mended(cleaned(text), nations), nations)):
        grounds, doubtful = _sorted_out(sentence)
        doubtful += [clause for clause in grounds if _is_doubtful(clause, nation)]
        if doubtful:
            return f"what the text says is in doubt: {quoted(doubtful[0].tokens)}"
        said += _completed(grounds)
    for measure in policy.measures:
        stage, missing = max(
            (_missing(measure, clause, nation, nations, standing) for clause in said), default=(0, "a thing")
        )
        if stage < _BORNE_OUT:
            return f"{measure}: the text does not say {missing}"
    if not policy.measures and not any(clause.keeps for clause in said):
        return "the text does not say that all stays as it is"
    held = {lever for clause in said if clause.keeps for lever in clause.levers if not _sized(clause)}
    if clash(held, policy.measures):
        return "the text also says that one of these stays as it is"
    return _left_out(policy, said, nation, nations, standing)


def _mended(text: str, nations: Sequence[str]) -> str:
    """Return `text` with each unknown word as the known one nearest to it, if there is one near."""
    for token in tokens(text, nations):
        word = token.text.lower()
        if token.kind == "unknown" and len(word) >= 4 and word.isalpha() and word not in AIMS | HARMLESS:
            near = get_close_matches(word, _VOCABULARY, n=1, cutoff=0.85)
            if near and not word.endswith(near[0]):  # "unlift" is no "lift"
                text = re.sub(rf"\b{token.text}\b", near[0], text)
    return text


def _sorted_out(sentence: Sequence[Token]) -> tuple[list[Clause], list[Clause]]:
    """Return the clauses of a sentence but its reasons and purposes, and those of these that may be more than that."""
    grounds: list[Clause] = []
    doubtful: list[Clause] = []
    justifies = ""
    found = clauses(sentence)
    for clause, following in zip(found, [*found[1:], None], strict=True):
        new = bool(clause.levers) or (clause.has("size", *NAMES) and not clause.has("outcome"))
        if clause.opens in JUSTIFYING:
            justifies = clause.opens
        elif clause.opens != "and" or new:
            if justifies in {"why", "aside"} and not clause.after_comma:  # "because ... and taxes rise by 2%"
                doubtful.append(clause)
            justifies = ""
        leads = following is not None and following.opens == "means" and not clause.levers
        if not (justifies or leads):
            grounds.append(clause)
        elif hides(clause, justifies or "follow"):
            doubtful.append(clause)
    return grounds, doubtful


def _is_doubtful(clause: Clause, nation: str) -> bool:
    """Return whether a clause holds what may turn its sense round, or what is another's."""
    unknown = any(token.kind == "unknown" and token.text.lower() not in HARMLESS for token in clause.tokens)
    others = [role for name, role in roles(clause) if name != nation]
    own_only = bool(clause.levers) and AGAINST_NATIONS.isdisjoint(clause.levers)
    foreign = any(role != "target" for role in others) or (own_only and others)
    undone = not clause.levers and clause.has(*VERBS) and not clause.has("same")  # "Kindly cancel it"
    return bool(unknown or foreign or undone or clause.is_past or clause.has(*_DOUBTFUL))


def _completed(grounds: Iterable[Clause]) -> list[Clause]:
    """Return clauses with what each takes over from those before: "tariffs on Canada by 5%, on Sweden by 2%"."""
    done: list[Clause] = []
    carried: list[list[Token]] = [[] for _ in _CARRIED]
    for clause in grounds:
        own = [[token for token in clause.tokens if token.kind in kinds] for kinds in _CARRIED]
        before = [token for mine, last in zip(own, carried, strict=True) if not mine for token in last]
        carried = [mine or last for mine, last in zip(own, carried, strict=True)]
        if clause.has(*LEVERS, *NAMES, "trade", "size", "number", "hold", "same"):
            done.append(Clause(clause.opens, tokens=[*before, *clause.tokens]))
    return done


def _sized(clause: Clause) -> bool:
    return clause.has("size", "number")


def _targets(clause: Clause, nation: str, nations: Sequence[str]) -> list[str]:
    named = [token.text for token in clause.tokens if token.kind == "nation"]
    everyone = [name for name in nations if name != nation and clause.has("everyone", "all_imports")]
    return named or everyone


def _missing(
    measure: Measure, clause: Clause, nation: str, nations: Sequence[str], standing: Standing | None
) -> tuple[int, str]:
    """Return how much of a measure a clause says, up to `_BORNE_OUT`, and what it does not say first."""
    if measure.lever not in clause.levers:
        return 0, f"the instrument ({in_words(measure.lever)})"
    if (measure.target is None) != (measure.lever not in AGAINST_NATIONS):
        return 1, "such a target"
    if measure.target is not None and measure.target not in _targets(clause, nation, nations):
        return 2, f"the target ({measure.target})"
    try:
        said = size_of(clause)
        _, how, size, unit = next(one for one in moves(clause, said, "") if one[0] == measure.lever)
    except UnclearPolicyError:
        return 3, "how far it is moved"
    if (how, unit) != (measure.how, measure.unit) or not isclose(abs(size), abs(measure.size)):
        return 4, f"the size ({measure.size:g} {in_words(measure.unit)})"
    if not isclose(size, measure.size):
        return 5, "the direction"
    try:
        refuse_disagreement(measure, said, clause, standing)
    except UnclearPolicyError:
        return 5, "sizes that agree with where it stands"
    return _BORNE_OUT, ""


def _left_out(
    policy: Policy, said: Iterable[Clause], nation: str, nations: Sequence[str], standing: Standing | None
) -> str:
    """Return which clause of a text no measure stands for, or ''."""
    for clause in said:
        sized = _sized(clause)
        if clause.keeps and not sized:
            continue
        for lever in clause.levers:
            for target in _targets(clause, nation, nations) if lever in AGAINST_NATIONS else [None]:
                meant = [measure for measure in policy.measures if (measure.lever, measure.target) == (lever, target)]
                if not any(
                    not sized or not _missing(measure, clause, nation, nations, standing)[1] for measure in meant
                ):
                    return f"the text also says {quoted(clause.tokens)}"
    return ""
