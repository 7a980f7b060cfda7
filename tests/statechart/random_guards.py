"""Random guards, each a pair: the expression, and what it means in plain Python."""

import operator

from hypothesis import strategies as st

from prism_mesa.statechart import F

AGENT_FIELDS = {
    "energy": st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]),
    "limit": st.sampled_from([-1, 0, 2, 100]),
    "is_bot": st.booleans(),
    "mood": st.sampled_from(["calm", "angry", ""]),
}
POST_FIELDS = {
    "relevance": st.sampled_from([0.0, 0.25, 0.5, 0.75, float("nan"), float("inf")]),
    "views": st.sampled_from([0, 1, 2, 120]),
    "is_pinned": st.booleans(),
}
AGENTS, POSTS = st.fixed_dictionaries(AGENT_FIELDS), st.fixed_dictionaries(POST_FIELDS)
NUMBERS = [("agent", name) for name in ("energy", "limit", "is_bot")] + [("post", name) for name in POST_FIELDS]


def field(place):
    root, name = place
    return getattr(getattr(F, root), name), lambda a, p: getattr(a if root == "agent" else p, name)


def constant(value):
    return value, lambda a, p: value


def joined(symbol, left, right):
    return symbol(left[0], right[0]), lambda a, p: symbol(left[1](a, p), right[1](a, p))


def logic(symbol, left, right):
    return symbol(left[0], right[0]), lambda a, p: symbol(bool(left[1](a, p)), bool(right[1](a, p)))


def negation(term):
    return ~term[0], lambda a, p: not term[1](a, p)


ARITHMETIC = st.sampled_from([operator.add, operator.sub, operator.mul, operator.truediv])
COMPARED = st.sampled_from([operator.gt, operator.ge, operator.lt, operator.le, operator.eq, operator.ne])
EQUALITY = st.sampled_from([operator.eq, operator.ne])
FIELDS = st.sampled_from(NUMBERS).map(field)
CONSTANTS = st.sampled_from([-1, 0, 1, 2, 0.25, 0.5, True]).map(constant)


def _calculated(terms):
    return st.builds(joined, ARITHMETIC, terms, terms | CONSTANTS) | st.builds(joined, ARITHMETIC, CONSTANTS, terms)


TERMS = st.recursive(FIELDS, _calculated, max_leaves=3)
COMPARISONS = st.builds(joined, COMPARED, TERMS, TERMS | CONSTANTS)
TEXTS = st.builds(joined, EQUALITY, st.just(field(("agent", "mood"))), st.sampled_from(["calm", "angry"]).map(constant))


def decided(guards):
    """Return guards, and combinations of them."""
    symbols = st.sampled_from([operator.and_, operator.or_])
    return st.recursive(
        guards, lambda parts: parts.map(negation) | st.builds(logic, symbols, parts, parts), max_leaves=4
    )


EXPRESSIONS = decided(COMPARISONS | TERMS | TEXTS)
