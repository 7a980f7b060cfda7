"""The words that policies are written in, and how a text is cut into them. Nothing here decides what a policy says."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from math import isfinite
from typing import NamedTuple

from prism_mesa.economy.policy import AGAINST_NATIONS, LEVERS


class Token(NamedTuple):
    """One term of a text.

    Attributes:
        kind: What the term does: a lever, a key of `_VERBS` or `_WORDS`, or `size`, `number`, `nation`, `unknown`, ...
        text: As written; of a nation its name as configured.
        number: Of a `size`: the number as written; a `number` stands alone, without a unit.
        unit: Of a `size`: `points`, `bp` (basis points), `percent`, `gdp` (percent of GDP), `whole` (parts of what is
            there: a half is 0.5). Of a `nation`: `owner` if written with 's.
    """

    kind: str
    text: str
    number: float = 0.0
    unit: str = ""


# The keys name the kinds of the tokens that a phrase becomes, in order; `whole=0.5` becomes a size of that number.
# Verbs are inflected, and `(s)` is a plural.
_VERBS = {
    "up": """raise, increase, hike, expand, boost, elevate, grow, step up, scale up, ramp up, push up, bump up, move up,
        strengthen, widen""",
    "up tight": "tighten",
    "down": "lower, cut, reduce, trim, slash, decrease, shrink, curtail, bring down, cut back, scale back, cut down",
    "down tight": "ease, loosen, relax",
    "down repay": "pay down, pay back, pay off, repay, redeem",
    "lift": "lift",
    "drop": "drop",
    "set": "set, fix, establish",
    "vary": "adjust, change, move, bring",
    "do": """impose, introduce, implement, levy, place, put, apply, enact, adopt, announce, launch, deliver, provide,
        slap, charge, approve, initiate, undertake, make""",
    "remove": "remove, abolish, eliminate, scrap, end, repeal, revoke, cancel, waive, withdraw, terminate",
    "block": "stop, ban, halt, block, suspend, prohibit, cease, cut off, sever",
    "hold": "hold, keep, maintain, leave, retain, freeze, preserve, stay, remain",
    "borrow debt": "borrow",
    "borrow": "issue, sell, float",
    "spending": "spend, invest",
    "sanction": "sanction",
    "embargo sanction": "embargo",
    "up whole=1": "double",
    "up whole=2": "triple",
    "down whole=0.5": "halve",
    "hedged": "consider, contemplate, explore, discuss, suggest, recommend",
}
_WORDS = {
    "policy_rate": """interest rate(s), policy rate(s), bank rate, cash rate, key rate(s), repo rate, federal funds
        rate, fed funds rate, base rate(s), benchmark rate, benchmark interest rate(s), key interest rate(s), key
        policy rate, policy interest rate(s), official cash rate, central bank rate, bank of england rate, rate(s)""",
    "stance policy_rate": "monetary policy",
    "spending": """spending, government spending, public spending, state spending, federal spending, expenditure(s),
        government expenditure(s), public expenditure(s), outlays, government outlays, public outlays, budget,
        government budget, austerity, austerity measures""",
    "spending part": """public investment, government investment, subsidy, subsidies, welfare, transfers, social
        transfers, pensions, unemployment benefits, welfare benefits, investment in, investments in, infrastructure
        investment(s), public works""",
    "stimulus spending": """stimulus, fiscal stimulus, economic stimulus, stimulus package, stimulus spending, stimulus
        program, stimulus programme, fiscal stimulus package, economic stimulus package, stimulus plan""",
    "part": """infrastructure, defence, defense, military, education, health, healthcare, health care, research, social,
        housing, transport, schools, hospitals, roads, security, science, police""",
    "taxes": """tax, taxes, taxation, tax rate(s), tax revenue(s), tax burden, vat, levies, value added tax, income tax,
        income taxes, income tax rate(s), personal income tax, corporate tax, corporate taxes, corporate tax rate(s),
        corporate income tax, corporation tax, sales tax, payroll tax, payroll taxes, property tax, property taxes,
        wealth tax, carbon tax, fuel tax, consumption tax, capital gains tax, income and corporate taxes, value added
        taxes, excise taxes""",
    "taxes down": "tax relief",
    "tariff": """tariff(s), import tariff(s), trade tariffs, import duty, import duties, customs duty, customs duties,
        customs tariffs, duty, duties, import tax, import taxes, tariff rate(s)""",
    "sanction": "sanctions, trade sanction, trade sanctions, economic sanction, economic sanctions",
    "embargo sanction": "trade embargo, trade ban, embargoes",
    "debt": """debt(s), public debt, government debt, national debt, sovereign debt, government bonds, bond(s), treasury
        bonds, sovereign bonds, state debt""",
    "borrow debt": "bond issuance, public borrowing, government borrowing",
    "ratio": "ratio, to gdp, to gdp ratio",
    "up": "rise, higher, up, upward, upwards, increment, expansion",
    "down": "reduction, reductions, decline, less, fewer, down, downward, downwards",
    "more": "more, additional, extra, further, another",
    "new": "new, fresh",
    "remove": "no longer impose",
    "hold same": """do nothing, do not change, don't change, no change(s), make no change(s), no action, take no action,
        stay the course, status quo, wait and see, not change, keep everything, without change""",
    "same": """unchanged, steady, constant, stable, as is, as they are, as it is, at its current level, where they are,
        at their current level(s), at the current level, at current levels, the same, current policy, current policies,
        existing policy, existing policies, current economic policy, current course, current stance""",
    "trade": "trade, commerce, trading",
    "imports": "imports, import, goods, products, imported goods",
    "all imports": "all imports, all imported goods, all foreign goods, every import",
    "everyone": """all nations, all countries, all other nations, all other countries, every nation, every country,
        every other nation, every other country, all trading partners, all trade partners, the rest of the world, each
        other nation, each other country, each nation, each country, everyone, everybody""",
    "vague": """neighboring countries, neighbouring countries, neighbors, neighbours, neighboring nations, allies,
        neighbouring nations, other countries, other nations, trading partners, trade partners, rivals, foreign
        countries, foreign nations, some countries, certain countries, hostile nations, hostile countries,
        competitors, enemies, countries, nations, adversaries, partners""",
    "product": """steel, aluminium, aluminum, cars, automobiles, vehicles, oil, gas, energy, food, agricultural,
        electronics, machinery, semiconductors, chips, luxury goods, luxury, textiles, timber, lumber, wine, cheese,
        dairy""",
    "absent": """minimum wage(s), quantitative easing, quantitative tightening, qe, price control(s), price cap(s),
        price freeze, rent control(s), wage controls, exchange rate(s), currency, money supply, print money, printing
        money, money printing, print more money, prints money, nationalise, nationalize, nationalisation,
        nationalization, nationalising, nationalizing, privatise, privatize, privatisation, privatization, capital
        controls, reserve requirement(s), forward guidance, universal basic income, helicopter money, quota(s), import
        quota(s), export controls, trade agreement(s), free trade agreement, trade deal, inflation target, asset
        purchases, buy bonds, buy government bonds, buying bonds, deregulate, deregulation, immigration, devalue,
        devaluation, gold standard""",
    "outcome": """unemployment, unemployment rate, inflation, inflation rate, gdp, gdp growth, growth, growth rate,
        economic growth, economy, deficit, budget deficit, surplus, budget surplus, trade deficit, trade surplus,
        trade balance, employment, jobs, wages, prices, output, production, consumption, exports, poverty, inequality,
        productivity, balanced budget, balance the budget, standard of living, living standards, demand, credit
        rating, private investment, recession, stability, gross domestic product, birth rate, tax base""",
    "is": "is, are",
    "by": "by",
    "to": "to",
    "at": "at",
    "of": "of, worth, equal to, amounting to, totalling, totaling",
    "in": "in",
    "from": "from",
    "on": "on, against, with, for, upon, towards, toward",
    "and": """and, plus, while, whilst, then, but, as well as, along with, together with, and also, and then, but also,
        in addition to, alongside, combined with, accompanied by, coupled with, also, additionally, in addition,
        furthermore, moreover, meanwhile, simultaneously, at the same time""",
    "financed": """financed by, funded by, paid for by, financed through, funded through, financed with, funded with,
        paid for with, paid by, financed via, financed from, funded from, financing it by, financing it with,
        financing this by, financing this with""",
    "means": "through, via, by means of, using",
    "why": """because, because of, since, as, due to, owing to, given, in response to, amid, in light of, in view of,
        considering, for the sake of, on account of, despite, thanks to""",
    "aside": "without, instead of, rather than",
    "purpose": """in order, so that, so as, thereby, thus, hence, which, with the aim, with the goal, with the
        intention, aiming, aimed, in an effort, in an attempt, designed, intended, hoping, this, that, these, it,
        they, such, use the money, use the revenue, use the proceeds""",
    "condition": "when, whenever, once, until, till, after, as soon as",
    "negation": """not, do not, don't, does not, should not, must not, shall not, will not, won't, never, no, avoid,
        avoiding, refrain from, refrain, neither, nor, cannot, can't, shouldn't, no longer, oppose, reject, against
        any""",
    "alternative": "or, either, alternatively, otherwise",
    "hedged": "maybe, perhaps, possibly, might, could, may, potentially, can, probably, likely, ideally",
    "range": """up to, at least, at most, no more than, not more than, more than, less than, about, around, roughly,
        nearly, approximately, almost, between, a range of, as much as, a minimum of, a maximum of""",
    "money": """dollar(s), euro(s), pound(s), krona, kronor, yen, yuan, million(s), billion(s), trillion(s), bn, usd,
        eur, gbp, sek, cad, aud, cents""",
    "absurd": "nan, infinity, inf, infinite, infinitely, googol",
    "whole=0.5": "half, a half",
    "whole=0.25": "a quarter",
    "filler": """the, a, an, our, its, their, all, both, any, we, i, let us, will, shall, should, must, would, be, let,
        let's, please, thank you, thanks, current, existing, overall, total, general, average, annual, official,
        main, short term, own, its own, government, the government, federal government, central bank, nation,
        country, nation's, country's, state, government's, federal reserve, reserve bank, bank, parliament,
        congress, administration, policy, policies, economic, economic policy, fiscal, national, federal, domestic,
        public, level(s), package, program, programme, plan, measure(s), directive, decision, action, full,
        complete, comprehensive, debt financed, deficit financed, decide to, decides to, decided to, plan to, plans
        to, propose to, proposes to, intend to, intends to, choose to, chooses to, going to, need to, needs to,
        ought to, have to, has to, want to, wants to, aim to, aims to, not only, effective, permanent, permanently,
        single, slightly, moderately, sharply, modestly, value, bilateral, therefore, accordingly, firstly, first,
        secondly, second, finally, across the board""",
}
_DOUBLED = frozenset("cut trim slap drop put scrap ban set stop".split())
_PAST = {
    "cut": "cut",
    "set": "set",
    "put": "put",
    "keep": "kept",
    "hold": "held",
    "leave": "left",
    "pay": "paid",
    "repay": "repaid",
    "bring": "brought",
    "make": "made",
    "sell": "sold",
    "spend": "spent",
    "withdraw": "withdrawn",
    "grow": "grown",
    "shrink": "shrunk",
}
_LONGEST_PHRASE = 6


def _forms(verb: str) -> list[str]:
    """Return the forms of a regular verb, or of one in `_PAST`; of several words only the first is inflected."""
    first, *rest = verb.split()
    stem = first + first[-1] if first in _DOUBLED else first.removesuffix("e")
    ends_in_y = first in {"apply", "levy"}
    third = first[:-1] + "ies" if ends_in_y else first + ("es" if first.endswith(("sh", "x")) else "s")
    past = first[:-1] + "ied" if ends_in_y else _PAST.get(first, stem + "ed")
    return [" ".join([form, *rest]) for form in (first, third, past, stem + "ing")]


def _lexicon() -> dict[str, tuple[str, ...]]:
    phrases = {form: kinds for kinds, verbs in _VERBS.items() for verb in verbs.split(",") for form in _forms(verb)}
    words = {
        " ".join(word.split()).replace("(s)", ending): kinds
        for kinds, text in _WORDS.items()
        for word in text.split(",")
        for ending in ("", "s")
        if ending == "" or "(s)" in word
    }
    return {
        phrase: tuple(kinds.replace("all imports", "all_imports").split())
        for phrase, kinds in (phrases | words).items()
    }


LEXICON: dict[str, tuple[str, ...]] = _lexicon()
"""Phrases in lower case, and the kinds of the tokens that each becomes."""

DIRECTED = frozenset({"up", "down", "lift", "drop"})
VERBS = DIRECTED | frozenset({"set", "vary", "do", "remove", "block", "hold", "borrow", "embargo"})

# ---- numbers ---------------------------------------------------------------------------------------------------------

_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen""".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_VALUES = {word: value for value, word in enumerate(_SMALL)} | {word: 20 + 10 * i for i, word in enumerate(_TENS)}
_PARTS = {"half": 0.5, "halves": 0.5, "quarter": 0.25, "quarters": 0.25, "tenth": 0.1, "tenths": 0.1}

_NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+|,[0-9]{1,2}(?![0-9]))?|\.[0-9]+)"
_UNIT = (
    r"(?:(?:basis points?|bps?|b\.p\.|(?:percentage|percent|per cent|pct|%) ?(?:points?|pts?)|points?|pts?|ppts?|pps?"
    r"|p\.p\.|%|percent|per cent|pct)(?![^\W_]))"
)
_OF_GDP = (
    r"(?: of)?(?: (?:the|our|its|their|a|annual|nominal|national|total|current|nation's|country's|year's))*"
    r" (?:gdp|gross domestic product)\b"
)
_SPELLED = re.compile(rf"\b(?:({'|'.join(_TENS)})(?: ({'|'.join(_SMALL[1:10])}))?|({'|'.join(_SMALL)}))\b", re.I)
_HUNDRED = re.compile(r"\b(?:([0-9]{1,3}) |an? )hundred\b(?: and ([0-9]{1,2})\b)?", re.I)
_FRACTION = re.compile(r"(?<![0-9./])(?:([0-9]{1,9}) )?([0-9]{1,9}) ?[/\u2044] ?([0-9]{1,9})(?![0-9./])")
_PART = re.compile(
    rf"\b(?:([0-9]+) and an? |([0-9]+) and (?=1 )|an? )?(?:([0-9]+) )?({'|'.join(_PARTS)})"
    rf"(?= (?:of )?(?:an? |1 )?(?:full )?{_UNIT})",
    re.I,
)
_POINT = re.compile(rf"\b([0-9]+) point ([0-9](?: [0-9])*)(?= ?{_UNIT})", re.I)
_ONE = re.compile(
    r"\ban? (?:full |single |whole )?(?=(?:(?:basis|percentage|percent|per cent) )?point\b|per ?cent\b)", re.I
)


def _digits(text: str) -> str:
    """Return `text` with its number words, and parts of a unit such as "a quarter of a point", as decimal numbers."""
    text = _SPELLED.sub(lambda m: str(sum(_VALUES[word.lower()] for word in m.groups() if word)), text)
    text = _POINT.sub(lambda m: f"{m[1]}.{m[2].replace(' ', '')}", text)
    text = _HUNDRED.sub(lambda m: str(100 * int(m[1] or 1) + int(m[2] or 0)), text)
    text = _FRACTION.sub(lambda m: repr(int(m[1] or 0) + int(m[2]) / int(m[3])) if int(m[3]) else m[0], text)
    text = _PART.sub(lambda m: repr(float(m[1] or m[2] or 0) + float(m[3] or 1) * _PARTS[m[4].lower()]), text)
    return _ONE.sub("1 ", text)


def _number(text: str) -> float:
    """Return the number that `text`, which matches `_NUMBER` with a sign or not, writes; infinite if it is too long."""
    text = text.replace(" ", "")
    thousands = re.fullmatch(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?", text)
    return float(text.replace(",", "" if thousands else "."))


# ---- tokens ----------------------------------------------------------------------------------------------------------

_NOW = (
    r"\b(?:(?:over|in|for|during|within|starting|beginning)(?: in)? (?:the |a |1 )?"
    r"(?:next |coming |following |current )?quarter"
    r"|(?:this|next) quarter|this (?:year|month)|(?:effective )?immediately|now|today|at once|right away"
    r"|with immediate effect)\b"
)
_SCHEDULE = (
    r"\b(?:(?:each|every|per) (?:quarter|month|year|week|meeting)|gradual(?:ly)?|phased?|step by step"
    r"|in (?:steps|stages|phases)|annually|yearly|quarterly|monthly|temporar(?:y|ily)|later|eventually|next year"
    r"|a (?:year|month)|(?:over|for|within|during|in|by|across|through) (?:the )?(?:next |coming |following )?"
    rf"(?:{_NUMBER} |several |a few |few )?(?:years?|months?|weeks?|quarters|decades?)"
    rf"|(?:in|by|from|until|starting) (?:the year )?20[0-9]{{2}}(?![0-9.,]*[0-9]| ?{_UNIT}))\b"
)
_RANGE = rf"{_NUMBER} ?{_UNIT}? ?[-\u2013\u2014~] ?{_NUMBER}(?: ?{_UNIT})?|\b(?:by|of) {_NUMBER} ?{_UNIT}? to {_NUMBER}"
_SIZE = (
    rf"(?P<sign>(?<![\w%])[+-] ?)?(?P<amount>{_NUMBER})(?: ?of)?(?P<one>(?: (?:an?|1|full|single)){{0,3}}) ?"
    rf"(?P<unit>{_UNIT})(?P<gdp>{_OF_GDP})?"
)


def _nation_pattern(names: Sequence[str]) -> dict[str, str]:
    """Return patterns of the nations' names and, for those of several words, initials; each with its nation."""
    patterns: dict[str, str] = {}
    initials: dict[str, list[str]] = {}
    for name in sorted(filter(str.strip, names), key=len, reverse=True):
        # Short names ("A", "Us") are words too: only their own spelling counts.
        patterns[re.escape(name) if len(name) > 3 else f"(?-i:{re.escape(name)})"] = name
        first = [word[0] for word in name.split() if word[0].isupper()]
        if len(first) > 1:
            initials.setdefault("".join(first), []).append(name)
    for letters, meant in initials.items():
        if len(meant) == 1 and letters not in names:
            dotted = r"\.".join(map(re.escape, letters))
            patterns[rf"(?-i:{re.escape(letters)}|{dotted}(?:\.|\b))"] = meant[0]
    return patterns


@lru_cache(maxsize=16)
def _scanner(names: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return the pattern of a raw token, and the name that each of its groups ``n0``, ``n1``, ... stands for."""
    patterns = _nation_pattern(names)
    groups = "|".join(f"(?P<n{i}>{pattern})" for i, pattern in enumerate(patterns)) or r"(?!)"
    pattern = rf"""(?P<now>{_NOW})|(?P<schedule>{_SCHEDULE})
        |(?P<nation>(?<!\w)(?:the )?(?:{groups})(?P<owner>'s?)?(?!\w))
        |(?P<range>{_RANGE})|(?P<absurd>[0-9][0-9.,]*e[+-]?[0-9]+)|(?P<size>{_SIZE})|(?P<number>(?<![\w%])[+-]?{_NUMBER}|{_NUMBER})
        |(?P<word>(?:[a-z]\.){{2,}}|[^\W\d_]+(?:'[^\W\d_]+)?)|(?P<mark>\S)"""
    return re.compile(re.sub(r"\n\s+", "", pattern), re.IGNORECASE), tuple(patterns.values())


_MARKS = {",": "and", "&": "and", ";": "stop", ".": "stop", "!": "stop", ":": "filler", "$": "money", "€": "money"}
_MARKS |= {"£": "money", "¥": "money"}


def _size(match: re.Match[str]) -> Token:
    number = _number((match["sign"] or "") + match["amount"])
    if not isfinite(number):
        return Token("absurd", match[0])
    if match["one"] and abs(number) > 1:  # "0.5 of a point" is a size, "5 a point" is not
        return Token("unknown", match[0])
    word = match["unit"].lower()
    unit = "bp" if word.startswith("b") else "percent" if word in {"%", "percent", "per cent", "pct"} else "points"
    return Token(
        "size", match[0], number / 100 if match["gdp"] and unit == "bp" else number, "gdp" if match["gdp"] else unit
    )


def _raw(text: str, names: tuple[str, ...]) -> list[Token]:
    """Return the tokens of `text` before phrases are looked up: each word is one token of the kind `word`."""
    scanner, nations = _scanner(names)
    raw: list[Token] = []
    for match in scanner.finditer(text):
        kind = match.lastgroup or ""
        if match["nation"]:
            name = next(
                nations[int(k[1:])] for k, said in match.groupdict().items() if said and re.fullmatch(r"n\d+", k)
            )
            raw.append(Token("nation", name, unit="owner" if match["owner"] else ""))
        elif match["size"]:
            raw.append(_size(match))
        elif match["number"]:
            number = _number(match[0])
            raw.append(Token("number" if isfinite(number) else "absurd", match[0], number))
        else:
            raw.append(Token(_MARKS.get(match[0], "unknown") if match["mark"] else kind, match[0]))
    return raw


def _phrase(raw: Sequence[Token], at: int) -> tuple[int, tuple[str, ...]]:
    """Return how many words the longest known phrase at a place has, and its kinds."""
    words = []
    for token in islice(raw, at, at + _LONGEST_PHRASE):
        if token.kind != "word":
            break
        words.append(token.text.lower())
    for length in range(len(words), 0, -1):
        if (kinds := LEXICON.get(" ".join(words[:length]))) is not None:
            return length, kinds
    return 1, ("unknown",)


def _term(kind: str, text: str, before: str) -> Token:
    if kind.startswith("whole="):
        return Token("size", text, float(kind.removeprefix("whole=")), "whole")
    if kind == "unknown" and text[0].isupper() and before in {"on", "from", "and", "stranger"}:
        return Token("stranger", text)
    return Token(kind, text)


def tokens(text: str, names: Sequence[str]) -> list[Token]:
    """Return the terms of `text` in order; a word that is in no phrase of the lexicon is `unknown`.

    An unknown word in capitals after "on", "from" or "and" may be a name and is a `stranger`. White space is nowhere.

    >>> [token.kind for token in tokens("Raise taxes on Sweden by half a point", ["Sweden"])]
    ['up', 'taxes', 'on', 'nation', 'by', 'size']
    """
    raw = _raw(_digits(text), tuple(names))
    terms: list[Token] = []
    at = 0
    while at < len(raw):
        if raw[at].kind != "word":
            terms.append(raw[at])
            at += 1
            continue
        length, kinds = _phrase(raw, at)
        said = " ".join(token.text for token in raw[at : at + length])
        terms.extend(_term(kind, said, terms[-1].kind if terms else "") for kind in kinds)
        at += length
    return terms


# ---- relevance -------------------------------------------------------------------------------------------------------


def _named(kinds: frozenset[str]) -> str:
    return "|".join(re.escape(phrase) for phrase, of in LEXICON.items() if not kinds.isdisjoint(of))


def _relevant(kinds: set[str], more: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_named(frozenset(kinds))}|{more})\b", re.IGNORECASE)


_MONETARY = "monetary|central bank|interest|quantitative easing|money supply|print(?:ing)? money|reserve requirements?"
_FISCAL = "fiscal|deficits?|surplus(?:es)?|tax\\w*|borrowing|bonds?|subsidi[sz]\\w*|welfare|universal basic income"
_TRADE = "imports?|exports?|quotas?|customs|protectionis[mt]"
RELEVANT: dict[str, re.Pattern[str]] = {
    "monetary": _relevant({"policy_rate"}, _MONETARY),
    "fiscal": _relevant({"spending", "taxes", "debt"}, _FISCAL),
    "trade": _relevant({*AGAINST_NATIONS, "trade"}, _TRADE),
    "economic": _relevant({*LEVERS, "absent", "trade"}, f"{_MONETARY}|{_FISCAL}|{_TRADE}"),
}
"""What a decision must mention to be about a domain: an instrument of it, whether it exists here or not."""


def is_about(text: str, domain: str) -> bool:
    """Return whether `text` names an instrument of `domain`: `economic` (any), `monetary`, `fiscal` or `trade`.

    Raises:
        KeyError: If there is no such domain.
    """
    return RELEVANT[domain].search(text) is not None
