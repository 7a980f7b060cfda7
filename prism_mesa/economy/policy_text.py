"""Parse policies in plain words into typed measures; unknown words are errors.

A sentence becomes a string of letters, one per term: "Cut taxes by 1% of GDP" is "DxbZ". Patterns match the clauses in
this string. An LLM reads sentences that no pattern matches (see `reading`).
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS, Lever, Measure, Policy, Unit, find_repeats, spell_out

MAX_LENGTH: Final = 500
"""The maximum number of characters in a policy."""


class UnclearPolicyError(ValueError):
    """The parser cannot read a policy in the text."""


def _verbs(*verbs: str) -> str:
    """Return a pattern for the present forms of verbs, given without a final e: "rais" for raise, raises, raising."""
    verb_parts = (verb.partition(" ") for verb in verbs)
    return "|".join(rf"{stem}(?:{stem[-1]}?ing|e|s|es)?{space}{rest}" for stem, space, rest in verb_parts)


HOLDS: Final = (
    r"do nothing|(?:make |take )?no (?:further |policy )*(?:changes?|action)(?: needed)?|stay the course"
    r"|(?:keep|leave) everything (?:as it is|unchanged)|(?:do not|don't) change anything"
    r"|(?:maintain|keep|continue with) (?:our |the )?(?:current|existing) (?:economic )?polic(?:y|ies)"
)
"""A pattern for texts that leave everything unchanged."""
_NUMBER: Final = r"[+-]?(?:\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})(?![,.]?\d)"
_UNIT: Final = r"basis points?|bps?|(?:percentage |percent |% ?)?(?:points?|pts?)|pp|%|percent|per cent|pct"
_PERCENT: Final = re.compile("%|percent|per cent|pct", re.IGNORECASE)
_GDP: Final = r"(?: of)?(?: (?:the|our|its|annual|total|national))* gdp\b"
_RATE: Final = "interest|policy|bank|cash|repo|base|key|benchmark|federal funds|official|central bank|short term"
_PART: Final = "infrastructure|education|health(?:care)?|defen[cs]e|military|social|welfare"
_TERMS: Final = {
    "Z": rf"(?P<number>{_NUMBER})(?: of)?(?: an?)? ?(?P<unit>{_UNIT})(?![^\W_])(?P<gdp>{_GDP})?",
    "n": _NUMBER,
    "N": "",  # set by `_make_scanner`
    "K": HOLDS,
    "u": r"unchanged|steady|constant|stable|as (?:it is|they are)|(?:at|where) (?:its|their|the) current levels?",
    "E": r"(?:full|complete|total) (?:trade |economic )?sanctions|(?:full |trade )*embargo",
    "A": r"(?:all|every) (?:imports?|(?:other |foreign )*(?:nations?|countr(?:y|ies)))|everyone|all trading partners",
    "f": r"(?:all )?(?:import |customs |trade )?(?:tariffs?|dut(?:y|ies))",
    "c": r"(?:all )?(?:trade |economic )?sanctions?",
    "?": r"(?:minimum|growth|unemployment|inflation|tax) rates?|rates? of|student (?:loan|debt)s?|debt limit",
    "q": rf"public investments?|public works|(?:{_PART}) (?:spending|investment)",
    "k": r"(?:fiscal |economic )?stimulus(?: package| program(?:me)?)?",
    "s": r"(?:(?:government|public|state|federal) )?(?:spending|expenditures?|outlays)",
    "y": r"(?:income|corporate|sales|property|payroll|carbon) tax(?:es)?|vat",
    "x": r"tax(?:es|ation| revenues?| burden)?",
    "r": rf"(?:(?:{_RATE}) )*rates?",
    "d": r"(?:(?:public|government|national) )?(?:debt|bonds)",
    "P": _verbs("repay", "pay down", "pay back"),
    "W": _verbs("borrow", "issu", "sell"),
    "V": _verbs("invest", "spend"),
    "U": _verbs("rais", "increas", "hik", "boost", "expand", "tighten") + "|rise",
    "D": _verbs("lower", "cut", "reduc", "decreas", "trim", "slash", "eas", "loosen") + "|reduction",
    "S": _verbs("set", "fix", "chang", "adjust", "bring"),
    "I": _verbs("impos", "introduc", "implement", "levy", "put", "plac", "apply", "enact", "deliver", "mak"),
    "R": _verbs("remov", "lift", "abolish", "eliminat", "scrap", "end", "suspend", "stop"),
    "B": _verbs("ban", "block", "halt"),
    "H": _verbs("hold", "keep", "maintain", "leav"),
    "L": "do not change|don't change",
    "e": "(?:all )?trade",
    "m": "additional|extra|further|more",
    "b": "by",
    "t": "to|at",
    "g": "on|against|from|with",
    "a": ",|and|&|plus|while",
    "-": r"the|an?|our|its|we|will|current|overall|government|central bank|imports?|goods|down|up|now|immediately"
    r"|(?:this|next|in the (?:next|coming|current)|over the (?:next|coming)) quarter|in (?:\d{4}Q[1-4]|Q[1-4] \d{4})",
    "o": "of|worth|in",
    "??": r"\w+(?:'\w+)?|\S",
}
"""Patterns of terms, by letter; the first match counts. `-` is skipped, `?` is unknown.

Lower case: instruments (r: rate, x: taxes, y: one tax, s: spending, q: a part of spending, k: stimulus, d: debt,
f: tariff, c: sanction, e: trade), words (by, to, o: of, g: on, and, more, unchanged). Upper case: nations (N, A: all),
sizes (Z), acts (up, down, set, impose, remove, ban, hold, W: borrow, P: repay, V: spend, E: embargo, K: hold all).
"""
_DOMESTIC: Final = "[rsxd](?:a[rsxd])*"
_TARGETS: Final = "g+(?:N(?:a+N)*|A)"
_BY_CLAUSES: Final = (
    f"[UD](?:{_DOMESTIC}|[qy])b?Z|S?{_DOMESTIC}bZ",
    f"[SI]?m?Z[rsxy][UD]|I?[rsxy][UD][ob]Z|I?[UD]o{_DOMESTIC}[ob]Z|I?Z[UD]o{_DOMESTIC}",
    f"[UD][fc](?:{_TARGETS}bZ|bZ{_TARGETS})|[fc]{_TARGETS}bZ|I?mZ[fc]{_TARGETS}",
    r"W(?:do)?Z|Pdb?Z|VmZ|Vm?Z[go](?:\?{1,3}|[qk])|I?m?Z[qk]|I?koZ",
)
_TO_CLAUSES: Final = (
    f"[UDSH]?{_DOMESTIC}u?t[Zn]",
    f"[ISUD]?[fc]{_TARGETS}[to][Zn]|I?fo[Zn]{_TARGETS}|I?Z[fc]{_TARGETS}|cZoe{_TARGETS}|BZoe{_TARGETS}",
)
_PATTERNS: Final = {
    "by": "|".join(_BY_CLAUSES),
    "to": "|".join(_TO_CLAUSES),
    "all": f"I?E{_TARGETS}|Be{_TARGETS}",
    "none": f"R[fc](?:{_TARGETS})?",
    "hold": f"H(?:{_DOMESTIC})?u?|L{_DOMESTIC}|(?:{_DOMESTIC})u|K",
}
_FORMS: Final = {form: re.compile(f"(?:{pattern})(?=a|$)") for form, pattern in _PATTERNS.items()}
"""Patterns of clauses by form: move by a size, set to a size, stop all trade, remove a barrier, or hold."""
_LEVERS: Final[dict[str, Lever]] = {
    **dict.fromkeys("sqk", "spending"),
    **dict.fromkeys("xy", "taxes"),
    **dict.fromkeys("cEe", "sanction"),
    "r": "policy_rate",
    "d": "debt",
    "f": "tariff",
}
_AIM_VERBS: Final = (
    r"(?:stimulat|support|boost|fight|curb|reduc|help|encourag|cool|combat|creat|protect|promot|address|tackl|bring"
    r"|lower|keep|stabili|spur|strengthen|improv|restor|contain|control|ensur|maintain|foster|rais|increas|prevent|cut"
    r"|pay)(?:\w*)"
)
_REASON: Final = re.compile(
    rf",? \b(?:in order to|so (?:as to|that)|because|since|given|due to|amid|thereby|which|to(?= {_AIM_VERBS}))\b.*"
    rf"|, (?:{_AIM_VERBS}ing|focusing on)\b.*|^(?:this|it) (?:will|should|would)\b.*"
    rf"|^(?:to {_AIM_VERBS}[^,]*,|{_AIM_VERBS} [^,\d]*? by(?= \w+ing\b)) ",
    re.IGNORECASE,
)
"""A sentence, or a part of a sentence, that states a reason."""
_GOAL: Final = re.compile(
    r"\b(?:inflation|unemployment|growth)(?: (?:is|at|to|of|down|back|the|target))* [\d.]+ ?(?:%|percent)",
    re.IGNORECASE,
)
_DOUBT: Final = re.compile(
    r"\b(?:not?|never|nor|if|unless|except|without|until|later|lies?|joke|oppos\w*|exclud\w*|instead|revers\w*"
    r"|undo\w*|cancel\w*|repeal\w*|delay\w*|postpon\w*|stop\w*)\b|n't\b",
    re.IGNORECASE,
)
_NUMBER_WORDS: Final = (
    {"three quarters": "0.75", "a quarter": "0.25", "half": "0.5", "twenty five": "25", "fifty": "50"}
    | {"seventy five": "75", "a hundred": "100", "twenty": "20"}
    | {word: str(n) for n, word in enumerate("zero one two three four five six seven eight nine ten".split())}
)
_CHARACTERS: Final = str.maketrans(
    {"\u2212": "-", "\u00bd": " 0.5", "\u2018": "'", "\u2019": "'", "\u201c": "", "\u201d": "", '"': "", "*": ""}
)


class _Term(NamedTuple):
    """A term of a text; `size` and `unit` (points, percent or gdp) are for sizes only."""

    letter: str
    text: str
    size: float = 0.0
    unit: str = ""


def parse_policy(text: str, nation: str, nations: Sequence[str]) -> Policy:
    """Parse the policy in a text.

    >>> print(parse_policy("Raise rates by 50 basis points and cut taxes by 1% of GDP.", "Sweden", ["Sweden"]))
    policy rate by +0.5 points, taxes by -1 % of GDP

    Args:
        text: At most `MAX_LENGTH` characters. ``str(policy)`` can also be parsed.
        nation: The nation that acts.
        nations: All nations, including `nation`.

    Raises:
        UnclearPolicyError: If a word is unknown or no pattern matches.
    """
    measures: list[Measure] = []
    held_levers: set[Lever] = set()
    sentences = [part.strip() for part in re.split(r"[.;!](?=\s|$)", _normalise_text(text)) if part.strip()]
    for sentence in sentences:
        reason = _REASON.search(sentence)
        if reason and _may_set_policy(reason[0], nations):
            raise UnclearPolicyError(f"not plain: {reason[0].strip(', ')[:80]!r}")
        terms = _find_terms(sentence[: reason.start()] + sentence[reason.end() :] if reason else sentence, nations)
        is_subject = bool(terms) and (terms[0].letter, terms[0].text) == ("N", nation)
        for form, clause in _split_clauses(terms[is_subject:], sentence):
            if form == "hold":
                held_levers.update({_LEVERS[term.letter] for term in clause if term.letter in _LEVERS} or LEVERS)
            else:
                measures += _measures(form, clause, measures, [name for name in nations if name != nation])
    if not sentences:
        raise UnclearPolicyError("says nothing")
    levers = {measure.lever for measure in measures}
    if find_repeats(measures) or held_levers & levers or ("debt" in held_levers and measures):
        raise UnclearPolicyError("moves an instrument twice, or one that it holds")
    return Policy(measures=tuple(measures))


def _normalise_text(text: str) -> str:
    """Return a text with plain characters, single spaces, and digits for numbers."""
    if len(text) > MAX_LENGTH:
        raise UnclearPolicyError(f"has {len(text)} characters: write at most {MAX_LENGTH}")
    text = unicodedata.normalize("NFKC", text.translate(_CHARACTERS))
    text = re.sub(r"\b(?:[A-Z]\.){2,}", lambda initials: initials[0].replace(".", ""), text)
    text = " ".join(re.sub(r"(?<=[A-Za-z0-9%])-(?=[A-Za-z])", " ", text).split())
    words = rf"\b(?:{'|'.join(_NUMBER_WORDS)})(?= (?:of an?|an?|percent\w*|per cent|basis|points?)\b|$)"
    text = re.sub(words, lambda word: _NUMBER_WORDS[word[0].lower()], text, flags=re.IGNORECASE)
    return re.sub(r"\b(?:minus|negative) (?=\d)", "-", text, flags=re.IGNORECASE)


def _may_set_policy(text: str, nations: Sequence[str]) -> bool:
    """Return whether a reason may set policy, because it has a size, an instrument with a verb, or a reversal."""
    letters = "".join(term.letter for term in _find_terms(_GOAL.sub("", text), nations))
    return bool(_DOUBT.search(text) or re.search("[ZN]|[UDSIRBHPWV][rsqkxydfc]", letters))


@lru_cache(maxsize=16)
def _make_scanner(nations: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern that matches a term, and the nations by name and by unique initials."""
    initials = ["".join(word[0] for word in name.split() if word[0].isupper()) for name in nations]
    codes = {letters: name for letters, name in zip(initials, nations, strict=True) if initials.count(letters) == 1}
    name_map = {letters: name for letters, name in codes.items() if len(letters) > 1} | {name: name for name in nations}
    names = [
        re.escape(name) if len(name) > 3 else f"(?-i:{re.escape(name)})"  # "US" is a nation, "us" is not
        for name in sorted(name_map, key=len, reverse=True)
    ]
    terms = _TERMS | {"N": rf"(?:{'|'.join(names) or '(?!)'})(?:'s)?"}
    fallback = terms.pop("??")
    groups = [rf"(?P<_{i}>(?:{pattern})(?!\w))" for i, pattern in enumerate(terms.values())]
    return re.compile("|".join([*groups, fallback]), re.IGNORECASE), {name.lower(): name_map[name] for name in name_map}


def _find_terms(text: str, nations: Sequence[str]) -> list[_Term]:
    """Return the terms of a text in order, without filler words."""
    scanner, name_map = _make_scanner(tuple(nations))
    letters = list(_TERMS)
    terms = []
    for match in scanner.finditer(text):
        letter = letters[int(match.lastgroup[1:])] if match.lastgroup else "?"
        if letter == "N":
            letter = "?" if match[0].endswith("'s") else "N"  # "Canada's taxes" are not an own instrument
            terms.append(_Term(letter, name_map.get(match[0].lower(), match[0])))
        elif letter == "Z":
            unit = "gdp" if match["gdp"] else "percent" if _PERCENT.fullmatch(match["unit"]) else "points"
            is_basis_points = match["unit"][0] in "bB"
            terms.append(_Term("Z", match[0], float(match["number"]) / (100 if is_basis_points else 1), unit))
        elif letter != "-":
            terms.append(_Term(letter, match[0], float(match[0]) if letter == "n" else 0.0))
    return terms


def _split_clauses(terms: Sequence[_Term], sentence: str) -> Iterator[tuple[str, Sequence[_Term]]]:
    """Yield the clauses of a sentence, each with its form in `_FORMS`."""
    letters, start = "".join(term.letter for term in terms), 0
    while start < len(letters):
        ends = {form: pattern.match(letters, start) for form, pattern in _FORMS.items()}
        form, end = max(((form, match.end() if match else 0) for form, match in ends.items()), key=lambda pair: pair[1])
        if not end:
            size = "" if "Z" in letters else ", and gives no size"
            raise UnclearPolicyError(f"not plain{size}: {sentence[:80]!r}")
        yield form, terms[start:end]
        start = end + len(letters[end:]) - len(letters[end:].lstrip("a"))


def _measures(form: str, clause: Sequence[_Term], earlier: Sequence[Measure], others: Sequence[str]) -> list[Measure]:
    """Return the measures of a clause; a barrier without a target applies to all `others`."""
    letters = "".join(term.letter for term in clause)
    default = _Term("Z", "", 100.0 if form == "all" else 0.0, "points")
    size = next((term for term in clause if term.letter in "Zn"), default)
    levers = list(dict.fromkeys(_LEVERS[letter] for letter in letters if letter in _LEVERS))
    levers = ["spending"] if "V" in letters else ["debt"] if "W" in letters else levers
    targets: Sequence[str | None] = [term.text for term in clause if term.letter == "N"] or others
    measures = []
    for lever in levers:
        amount, unit = _measure_size(lever, form, letters, size, earlier)
        for target in targets if lever in AGAINST_NATIONS else [None]:
            how: Literal["by", "to"] = "by" if form == "by" else "to"
            measures.append(Measure(lever=lever, how=how, size=amount, unit=unit, target=target))
    if len({measure.unit for measure in measures}) > 1:  # 1 % is a point of a rate but a hundredth of taxes
        raise UnclearPolicyError("gives one size for instruments with different units: give each its own")
    return measures


def _measure_size(lever: Lever, form: str, letters: str, size: _Term, earlier: Sequence[Measure]) -> tuple[float, Unit]:
    """Return the signed size of a measure, and its unit."""
    amount, is_move, is_part = size.size, form == "by", bool(set("qkyVW") & set(letters))
    direction = -1 if set("DP") & set(letters) else 1 if set("UmWVkq") & set(letters) else 0
    has_sign = size.text[:1] in ("+", "-")
    if is_move and not has_sign:
        last_size = earlier[-1].size if earlier and earlier[-1].how == "by" and "S" not in letters else 0.0
        amount *= direction or (last_size > 0) - (last_size < 0)
    if is_move and (not amount or (has_sign and direction)):
        raise UnclearPolicyError(f"does not say which way, or says it twice: {size.text!r}")
    if size.letter == "n" and amount:
        raise UnclearPolicyError(f"gives no unit: {size.text!r}")
    if (lever in AGAINST_NATIONS or lever == "policy_rate") and size.unit != "gdp":
        return amount, "points"
    if lever not in AGAINST_NATIONS and lever != "policy_rate":
        if size.unit == "gdp" or (is_move and size.unit == "points" and not is_part):
            return amount, "percent_of_gdp"
        if is_move and not is_part:
            return amount, "percent"
    raise UnclearPolicyError(f"gives a size that {spell_out(lever)} does not have: {size.text!r}")
