"""The table of the words that policies are written in."""

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
    "block": "ban, block, prohibit, cut off, sever",
    "block remove": "stop, halt, suspend, cease",
    "hold": "hold, keep, maintain, leave, retain, freeze, preserve, stay, remain, continue",
    "borrow debt": "borrow",
    "borrow": "issue, sell, float",
    "spend spending": "spend, invest",
    "sanction": "sanction",
    "embargo sanction": "embargo",
    "up whole=1": "double",
    "up whole=2": "triple",
    "down whole=0.5": "halve",
    "hedged": "consider, contemplate, explore, discuss, suggest, recommend",
    "odd": "delay, postpone, defer, reverse, undo, overturn, threaten, refuse, exempt, exclude",
}
_WORDS = {
    "policy_rate": """interest rate(s), policy rate(s), bank rate, cash rate, key rate(s), repo rate, federal funds
        rate, fed funds rate, base rate(s), benchmark rate, benchmark interest rate(s), key interest rate(s), key
        policy rate, policy interest rate(s), official cash rate, central bank rate, bank of england rate, rate(s)""",
    "stance policy_rate": "monetary policy",
    "spending": """spending, government spending, public spending, state spending, federal spending, expenditure(s),
        government expenditure(s), public expenditure(s), outlays, government outlays, public outlays, budget,
        government budget""",
    "tight spending": "austerity, austerity measures",
    "spending part": """public investment, government investment, subsidy, subsidies, welfare, transfers, social
        transfers, pensions, unemployment benefits, welfare benefits, investment in, investments in, infrastructure
        investment(s), public works""",
    "stimulus spending": """stimulus, fiscal stimulus, economic stimulus, stimulus package, stimulus spending, stimulus
        program(s), stimulus programme(s), fiscal stimulus package, economic stimulus package, stimulus plan,
        spending program(s), spending programme(s), spending package(s), infrastructure program(s), infrastructure
        programme(s), infrastructure package(s), investment program(s), investment programme(s), investment
        package(s)""",
    "part": """infrastructure, defence, defense, military, education, health, healthcare, health care, research, social,
        housing, transport, schools, hospitals, roads, security, science, police, technology, innovation, public
        services, research and development, clean energy, green energy, renewable energy, job training, job creation,
        training, childcare, social services, social programs, public transportation, transportation, public health,
        public transport, affordable housing, manufacturing, digital infrastructure, job training programs""",
    "taxes": "tax, taxes, taxation, tax revenue(s), tax burden, levies",
    "tax_rate taxes": "tax rate(s), taxation rate(s), rate of tax, rates of tax, rate of taxation, rates of taxation",
    "one_tax taxes": """vat, value added tax, income tax, income taxes, income tax rate(s), personal income tax,
        personal income taxes, personal income tax rate(s), corporate tax, corporate taxes, corporate tax rate(s),
        corporate income tax, corporate income tax rate(s), corporation tax, sales tax, sales taxes, payroll tax,
        payroll taxes, payroll tax rate(s), property tax, property taxes, wealth tax, carbon tax, fuel tax, consumption
        tax, capital gains tax, capital gains taxes, capital gains tax rate(s), income and corporate taxes, value added
        taxes, excise tax, excise taxes, vat rate(s), sales tax rate(s), excise duty, excise duties""",
    "taxes down": "tax relief",
    "tariff": """tariff(s), import tariff(s), trade tariffs, import duty, import duties, customs duty, customs duties,
        customs tariffs, duty, duties, import tax, import taxes, tariff rate(s)""",
    "sanction": "sanctions, trade sanction, trade sanctions, economic sanction, economic sanctions",
    "embargo sanction": """trade embargo, trade ban, embargoes, full sanctions, full trade sanctions, full economic
        sanctions, complete sanctions, complete trade sanctions, total sanctions, total trade sanctions""",
    "tariff all_imports": "all tariffs, all import tariffs, all import duties, all customs duties",
    "sanction all_imports": "all sanctions, all trade sanctions, all economic sanctions",
    "odd tariff": "no tariff(s), no import tariffs",
    "odd sanction": "no sanctions, no trade sanctions",
    "trade between": "trade between",
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
        stay the course, status quo, wait and see, not change, keep everything, without change, no policy change(s), no
        further change(s), no further action, no action needed, no new measures, no new policies, change nothing, do not
        change anything, don't change anything""",
    "same": """unchanged, steady, constant, stable, as is, as they are, as it is, at its current level, where they are,
        at their current level(s), at the current level, at current levels, the same, current policy, current policies,
        existing policy, existing policies, current economic policy, current economic policies, current course, current
        stance, current policy stance""",
    "trade": "trade, commerce, trading",
    "imports": "imports, import, goods, products, imported goods",
    "all_imports": "all imports, all imported goods, all foreign goods, every import",
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
        rating, private investment, recession, stability, gross domestic product, birth rate, tax base, private
        spending, consumer spending, household spending, consumer demand, business investment, private debt, household
        debt, consumer debt, student debt, corporate debt, borrowing cost(s), cost of borrowing, trade tensions""",
    "is": "is, are",
    "by": "by",
    "to": "to",
    "at": "at, bringing it to, bringing them to, bringing the rate to, bringing the policy rate to, taking it to",
    "of": "of, worth, equal to, amounting to, totalling, totaling",
    "in": "in, into",
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
    "purpose": """in order, so that, so as, thereby, thus, hence, with the aim, with the goal, with the intention,
        aiming, aimed, in an effort, in an attempt, designed, intended, hoping, use the money, use the revenue, use the
        proceeds""",
    "follow": "which, this, that, these, it, they, such",
    "focus": """targeting, focusing on, focused on, with a focus on, with focus on, directed at, directed towards,
        targeted at, prioritizing, prioritising""",
    "condition": "when, whenever, once, until, till, after, as soon as",
    "negation": """not, do not, don't, does not, should not, must not, shall not, will not, won't, never, no, avoid,
        avoiding, refrain from, refrain, neither, nor, cannot, can't, shouldn't, no longer, oppose, reject, against
        any""",
    "alternative": "or, either, alternatively, otherwise",
    "hedged": """maybe, perhaps, possibly, might, could, may, potentially, can, probably, likely,
        ideally, a plan to, the plan to, our plan to, its plan to, a proposal to, announce plans to, announces plans to,
        announce plan to, announcing plans to, an intention to, the intention to, our intention
        to, its intention to, plans for, a plan for""",
    "range": """up to, at least, at most, no more than, not more than, more than, less than, about, around, roughly,
        nearly, approximately, almost, between, a range of, as much as, a minimum of, a maximum of""",
    "money": """dollar(s), euro(s), pound(s), krona, kronor, yen, yuan, million(s), billion(s), trillion(s), bn, usd,
        eur, gbp, sek, cad, aud, cents""",
    "absurd": "nan, infinity, inf, infinite, infinitely, googol",
    "whole=0.5": "half, a half",
    "whole=0.25": "a quarter",
    "odd": """except, except for, excluding, save for, other than, apart from, aside from, barring, with the exception
        of, was, were, been, had, has, have, having, did, last quarter, last quarter's, last month, last month's, last
        year, last year's, last, previously, already, yesterday, earlier, ago, formerly""",
    "jest": """joke(s), joking, lie(s), lying, kidding, hoax, prank, bluff, sarcasm, nonsense, untrue, false, fake,
        hypothetical, hypothetically, never mind, pretend""",
    "filler": """the, a, an, our, its, their, all, both, any, we, i, let us, will, shall, should, must, would, be, let,
        let's, please, thank you, thanks, current, existing, overall, total, general, average, annual, official, main,
        short term, own, its own, government, the government, federal government, central bank, nation, country,
        nation's, country's, state, government's, federal reserve, reserve bank, bank, parliament, congress,
        administration, policy, policies, economic, economic policy, fiscal, national, federal, domestic, public,
        level(s), project(s), everything, things, package, program, programme, plan, measure(s), directive, decision,
        action, full, complete, comprehensive, debt financed, deficit financed, decide to, decides to, decided to, plan
        to, plans to, propose to, proposes to, intend to, intends to, choose to, chooses to, going to, need to, needs
        to, ought to, have to, has to, want to, wants to, aim to, aims to, not only, effective, permanent, permanently,
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
_AIMS = """help, support, stimulate, curb, fight, combat, tackle, control, contain, cool, encourage, promote, protect,
    improve, foster, attract, sustain, stabilize, stabilise, create, restore, address, counter, spur, aim, enhance,
    secure, tame, revive, ensure"""


def _forms(verb: str) -> list[str]:
    """Return the forms of a regular verb, or of one in `_PAST`; of several words only the first is inflected."""
    first, *rest = verb.split()
    stem = first + first[-1] if first in _DOUBLED else first.removesuffix("e")
    ends_in_y = first in {"apply", "levy"}
    third = first[:-1] + "ies" if ends_in_y else first + ("es" if first.endswith(("sh", "x")) else "s")
    past = first[:-1] + "ied" if ends_in_y else _PAST.get(first, stem + "ed")
    return [" ".join([form, *rest]) for form in (first, third, stem + "ing", past)]


def _lexicon() -> dict[str, tuple[str, ...]]:
    phrases: dict[str, str] = {}
    for kinds, verbs in _VERBS.items():
        for *forms, past in map(_forms, verbs.split(",")):
            phrases |= {past: f"{kinds} past"} | dict.fromkeys(forms, kinds)
    for kinds, text in _WORDS.items():
        for phrase in (" ".join(word.split()) for word in text.split(",")):
            phrases |= {phrase.replace("(s)", ""): kinds, phrase.replace("(s)", "s"): kinds}
    return {phrase: tuple(kinds.split()) for phrase, kinds in phrases.items()}


LEXICON: dict[str, tuple[str, ...]] = _lexicon()
"""Phrases in lower case, and the kinds of the tokens that each becomes."""

LONGEST = max(len(phrase.split()) for phrase in LEXICON)
"""How many words the longest phrase has."""

AIMS = frozenset(form for verb in _AIMS.split(",") for form in _forms(verb)) | frozenset(
    """consumer consumers business businesses household households families workers investors investment confidence
    industry industries domestic local sustainable long run term price market markets activity overall""".split()
)
"""Words, in no phrase of the lexicon, of which it is said what a policy is for."""

HARMLESS = frozenset(
    """my dear friend friends colleagues citizens people ladies gentlemen kindly oh go hereby decree stiff bold modest
    moderate lovely beautiful proudly gladly firmly boldly quickly swiftly promptly decisively cautiously moment size
    ( )""".split()
)
"""Words, in no phrase of the lexicon, that change nothing of what is done."""

DIRECTED = frozenset({"up", "down", "lift", "drop"})
"""The kinds of the words that say which way an instrument is moved."""

VERBS = DIRECTED | frozenset({"set", "vary", "do", "remove", "block", "hold", "borrow", "embargo", "spend"})
"""The kinds of the words for doing something."""
