"""Studies and what became of them, made by hand: what reports are tried on. Their tables are plain normal theory."""

from itertools import combinations, product
from math import nan, sqrt

import numpy as np
import pandas as pd

from prism_mesa.runs.config import Config
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import Analysis, RunTable, Verdict

HOSTILE = "<script>alert('x')</script> | a\nb `c` *d* [e](http://evil.example) $f$ __g__ & h"
LONG = "the worker was gone without a word " * 17 + "end"


def noise(seed):
    return np.random.Generator(np.random.PCG64(seed))


def runs_of(arms, factors, seeds, measures, values):
    """Return runs that all are done; `values(measure, arm, levels, number of the seed, draw)` is what they measured."""
    rows = []
    draw = noise(7)
    for arm, levels, (place, seed) in product(arms, factors, enumerate(seeds)):
        row = {"run": f"{arm[:12]}-{len(rows):05x}", "arm": arm, "seed": seed, "status": "done", "reason": "", **levels}
        rows.append(row | {name: values(name, arm, levels, place, draw) for name in measures})
    return pd.DataFrame(rows)


def grid(**levels):
    """Return all combinations of levels, `__` in a name for its dot."""
    names = [name.replace("__", ".") for name in levels]
    return [dict(zip(names, combination, strict=True)) for combination in product(*levels.values())]


def facts_of(runs, *, kept=True, decided_by="rule", fallback=0):
    ran = runs[runs["status"] != "missing"]
    n = len(ran)
    return pd.DataFrame(
        {
            "run": ran["run"],
            "ending": np.where(ran["status"] == "done", "done", "timeout"),
            "reason": ran["reason"],
            "cpu_s": 0.31,
            "wall_s": 0.35,
            "peak_memory_mb": 412.0,
            "decided_by": decided_by,
            "open": 1250,
            "fallback": fallback,
            "calls": 0 if decided_by == "rule" else 900,
            "tokens": 0 if decided_by == "rule" else 120_000,
            "sources": ['{"rule": 1250}' if decided_by == "rule" else '{"llm": 900, "cache": 340, "fallback": 10}'] * n,
            "attempts": 1,
            "folder": [f"runs/{run}" if kept else "" for run in ran["run"]],
            "again": [f"feed.mode=x_algo seed={seed}" for seed in ran["seed"]],
        }
    )


def answers_of(table):
    keys = ["arm", *table.factors]
    frames = []
    for measure in table.measures:
        runs = table.runs.groupby(keys, sort=False, dropna=False)[measure]
        found = runs.agg(["count", "size", "mean", "median", "std"]).reset_index()
        half = 1.96 * found["std"] / found["count"] ** 0.5
        found = found.assign(measure=measure, missing=found["size"] - found["count"])
        found = found.assign(low=found["mean"] - half, high=found["mean"] + half)
        frames.append(found.rename(columns={"count": "n", "std": "sd"}).drop(columns="size"))
    return pd.concat(frames, ignore_index=True)


def by_level(table, measure, term):
    others = [name for name in ("arm", *table.factors, "seed") if name != term]
    return table.runs.pivot(index=others, columns=term, values=measure)


def difference_of(table, measure, term, left, right, wide=None):
    wide = by_level(table, measure, term) if wide is None else wide
    pairs = (wide[left] - wide[right]).dropna()
    half = 1.96 * pairs.std() / sqrt(len(pairs)) if len(pairs) > 1 else nan
    mean = pairs.mean()
    p = float(min(1.0, 2 * np.exp(-0.7 * (abs(mean) / half * 1.96) ** 1.6))) if half and half == half else nan
    return {
        "measure": measure,
        "term": term,
        "left": left,
        "right": right,
        "n": len(pairs),
        "missing": len(wide) - len(pairs),
        "difference": mean,
        "low": mean - half,
        "high": mean + half,
        "d_z": float(mean / pairs.std()) if pairs.std() else nan,
        "p": p,
        "p_holm": min(1.0, p * 3),
        "family": "expectations" if measure == "gini_impressions" else "other differences",
        "u": 0.0,
        "p_mann_whitney": min(1.0, p * 1.2),
        "rank_biserial": float(np.tanh(mean / (pairs.std() or 1))),
    }


DIFFERENCES = (
    "measure term left right n missing difference low high d_z p p_holm family u p_mann_whitney rank_biserial".split()
)
PRECISION = "measure term left right seeds half_width".split()


def analysis_of(table, expectations=(), **tables):
    few = [name for name in table.factors if table.runs[name].nunique() <= 4]
    terms = [*(["arm"] if len(table.arms) > 1 else []), *few]
    differences = []
    for measure, term in product(table.measures, terms):
        wide = by_level(table, measure, term)
        pairs = combinations(table.runs[term].drop_duplicates(), 2)
        differences += [difference_of(table, measure, term, *pair, wide) for pair in pairs]
    seeds = table.runs["seed"].nunique()
    precision = [
        {name: row[name] for name in PRECISION[:4]}
        | {"seeds": n, "half_width": (row["high"] - row["low"]) / 2 * sqrt(seeds / n)}
        for row in differences
        for n in range(2, seeds + 1)
    ]
    empty = {
        "groups": "measure term n missing h df p p_holm",
        "equivalence": "text measure left right n missing margin low high p_low p_high p p_holm equivalent",
        "effects": "measure effect n missing df f p p_holm partial_eta_squared",
        "sensitivity": "measure factor index value low high",
    }
    frames = {name: pd.DataFrame(columns=columns.split()) for name, columns in empty.items()} | tables
    notes = frames.pop("notes", ())
    return Analysis(
        tuple(expectations),
        answers_of(table),
        pd.DataFrame(differences, columns=DIFFERENCES),
        **frames,
        precision=pd.DataFrame(precision, columns=PRECISION),
        notes=notes,
    )


def result_of(folder, table, analysis, *, name="study", question="What happens?", values=None, facts=None, **more):
    status = {"done"} ^ set(table.runs["status"]) or {"done"}
    told = "incomplete" if "missing" in status else "failed" if "failed" in status else "done"
    facts = facts_of(table.runs) if facts is None else facts
    base = more.get("base", Config())
    return StudyResult(
        folder,
        name,
        question,
        told,
        values or {"question": question},
        base,
        table,
        facts,
        analysis,
        more.get("notes", ()),
    )


def two_arms(folder):
    """Return a study of two arms and twenty paired seeds."""
    arms, measures = ("chronological", "ranked"), ("gini_impressions", "cascade_mean", "reshares")

    def values(measure, arm, levels, place, draw):
        seed, ranked = np.sin(place * 1.7), arm == "ranked"
        return {
            "gini_impressions": 0.712 + 0.018 * seed + 0.031 * ranked + draw.normal(0, 0.008),
            "cascade_mean": 2.21 + 0.14 * seed + 0.02 * ranked + draw.normal(0, 0.09),
            "reshares": float(round(4120 + 260 * seed - 310 * ranked + draw.normal(0, 120))),
        }[measure]

    table = RunTable(runs_of(arms, [{}], range(1, 21), measures, values), arms, (), measures)
    found = {name: difference_of(table, name, "arm", "ranked", "chronological") for name in measures}
    said = {
        "gini_impressions": ("holds", "Attention is more unequal in ranked than in chronological: by {:.3f}."),
        "cascade_mean": ("open", "These runs cannot tell whether cascades are larger in ranked ({:.3f})."),
        "reshares": ("fails", "There are fewer reshares in ranked than in chronological, not more: {:.0f}."),
    }
    verdicts = [
        Verdict(
            f"{name}: ranked > chronological",
            verdict,
            of["difference"],
            (of["low"], of["high"]),
            of["p"],
            of["p_holm"],
            of["n"],
            of["missing"],
            "Wilcoxon signed-rank",
            sentence.format(of["difference"]),
        )
        for (name, (verdict, sentence)), of in zip(said.items(), found.values(), strict=True)
    ]
    equal = found["cascade_mean"]
    equivalence = pd.DataFrame(
        [
            {
                "text": "cascade_mean: ranked = chronological within 25 %",
                "measure": "cascade_mean",
                "left": "ranked",
                "right": "chronological",
                "margin": 0.55,
                "low": equal["low"],
                "high": equal["high"],
                "p_low": 0.0001,
                "p_high": 0.0002,
                "p": 0.0002,
                "p_holm": 0.0004,
                "n": 20,
                "missing": 0,
                "equivalent": True,
            }
        ]
    )
    given = {
        "question": "Does a ranked feed make attention more unequal?",
        "base": "configs/default.yaml",
        "arms": {"chronological": {"feed.mode": "chronological"}, "ranked": {"feed.mode": "x_algo"}},
        "seeds": 20,
        "measures": list(measures),
        "expect": [verdict.text for verdict in verdicts],
    }
    analysis = analysis_of(table, verdicts, equivalence=equivalence)
    return result_of(folder, table, analysis, name="feeds", question=given["question"], values=given)


def factorial(folder):
    """Return a 2 x 2 study without arms, of which runs failed and are missing."""
    measures = ("cascade_mean", "engagement_per_impression")

    def values(measure, arm, levels, place, draw):
        media, ranked = levels["posts.media_share"] == 0.6, levels["feed.mode"] == "x_algo"
        size = 2.1 + 0.2 * media + 0.1 * ranked + 0.35 * media * ranked + 0.1 * np.cos(place) + draw.normal(0, 0.08)
        return size if measure == "cascade_mean" else 0.0123 + 0.002 * media + draw.normal(0, 0.0006)

    levels = grid(posts__media_share=[0.1, 0.6], feed__mode=["chronological", "x_algo"])
    runs = runs_of(("all",), levels, range(1, 26), measures, values)
    for place, reason in ((3, "timeout: 600 s are over"), (55, HOSTILE), (77, LONG)):
        runs.loc[place, ["status", "reason"]] = ["failed", reason]
        runs.loc[place, list(measures)] = nan
    runs.loc[[98, 99], "status"] = "missing"
    runs.loc[[98, 99], list(measures)] = nan
    table = RunTable(runs, ("all",), ("posts.media_share", "feed.mode"), measures)
    effects = pd.DataFrame(
        [
            (measure, effect, 95, 5, 1, 41.2 / n, 0.0001 * n**4, 0.0003 * n**4, 0.3 / n)
            for measure in measures
            for n, effect in enumerate(["posts.media_share", "feed.mode", "posts.media_share x feed.mode"], 1)
        ],
        columns="measure effect n missing df f p p_holm partial_eta_squared".split(),
    )
    groups = pd.DataFrame(
        [(measure, "condition", 95, 5, 31.4, 3, 0.0001, 0.0002) for measure in measures],
        columns="measure term n missing h df p p_holm".split(),
    )
    analysis = analysis_of(table, effects=effects, groups=groups)
    facts = facts_of(runs, kept=False, decided_by="llm SmolLM2-135M", fallback=10)
    question = "Do media make cascades larger, and does a ranked feed make more of that?"
    base = Config(agents={"n": 500}, rounds=50, network={"kind": "stochastic_block"})
    notes = ("2 runs of an earlier version of this study are stale: they are kept, and not counted.",)
    return result_of(folder, table, analysis, name="media", question=question, facts=facts, base=base, notes=notes)


def sobol(folder, n=64, index="st"):
    """Return a sampled study of three factors, of Sobol's design or, with ``index="mu_star"``, of Morris's."""
    factors, measures = ("agents.band", "agents.activity", "feed.size"), ("reshares", "gini_impressions")
    draw = noise(3)
    points = [
        {"agents.band": draw.uniform(0.02, 0.1), "agents.activity": draw.uniform(0.2, 0.8), "feed.size": int(size)}
        for size in draw.integers(5, 30, n * 8)
    ]

    def values(measure, arm, levels, place, draw):
        band, activity, size = levels.values()
        return {
            "reshares": 9000 * band * activity + 20 * size + draw.normal(0, 20),
            "gini_impressions": 0.6 + band + 0.005 * size + draw.normal(0, 0.01),
        }[measure]

    runs = runs_of(("all",), points, [1], measures, values)
    design = "sobol" if index == "st" else "morris"
    sampling = {"seed": 1, "n": n, "problem": {"num_vars": 3}}
    table = RunTable(runs, ("all",), factors, measures, design, True, sampling)
    shares = {"agents.band": (0.31, 0.44), "agents.activity": (0.36, 0.49), "feed.size": (0.11, 0.12)}
    kinds = ("s1", "st") if index == "st" else ("mu_star", "sigma", "mu")
    rows = [
        (
            measure,
            factor,
            kind,
            shares[factor][place % 2],
            shares[factor][place % 2] - 0.06,
            shares[factor][place % 2] + 0.06,
        )
        for measure in measures
        for factor in factors
        for place, kind in enumerate(kinds)
    ]
    frame = pd.DataFrame(rows, columns="measure factor index value low high".split())
    frame.loc[frame["index"].isin(["sigma", "mu"]), ["low", "high"]] = nan
    question = "Which settings matter for how much is reshared?"
    return result_of(folder, table, analysis_of(table, sensitivity=frame), name="sweep", question=question)


def many(folder, seeds=3):
    """Return a study of twelve arms and three factors, with long names and whatever somebody may write."""
    arms = (
        HOSTILE,
        *(f"a rather long name of an arm, number {n} of twelve, as people write them" for n in range(2, 13)),
    )
    measures = ("reshares", "my_measures:toxicity_of_what_is_passed_on", "module:measure")

    def values(measure, arm, levels, place, draw):
        return arms.index(arm) * 0.1 + levels["agents.band"] * 5 + np.sin(place) + draw.normal(0, 0.3)

    levels = grid(agents__band=[0.02, 0.1], feed__mode=["random", "x_algo"], feed__size=[5, 10])
    runs = runs_of(arms, levels, range(1, seeds + 1), measures, values)
    runs["run"] = [f"{place:012x}" for place in range(len(runs))]
    runs.loc[::17, ["status", "reason"]] = ["failed", LONG]
    runs.loc[::17, list(measures)] = nan
    table = RunTable(runs, arms, ("agents.band", "feed.mode", "feed.size"), measures)
    verdict = Verdict(
        f"reshares: {HOSTILE} > x", "open", nan, (nan, nan), nan, nan, 0, 9, "none", f"No pairs: {HOSTILE}"
    )
    given = {
        "question": HOSTILE,
        "arms": {arm: {"feed": {"mode": "x_algo"}, "agents.n": n} for n, arm in enumerate(arms, 9)},
    }
    facts = facts_of(runs, decided_by=HOSTILE)
    notes = (HOSTILE, "plain")
    analysis = analysis_of(table, [verdict], notes=("the intervals of 3 conditions are wide: 1 seed each",))
    return result_of(folder, table, analysis, name="many", question=HOSTILE, values=given, facts=facts, notes=notes)


def nothing_yet(folder):
    """Return a study of one seed of which nothing has been run."""
    arms, measures = ("a", "b"), ("reshares",)
    runs = runs_of(arms, [{}], [1], measures, lambda *_: nan)
    runs["status"] = "missing"
    table = RunTable(runs, arms, (), measures)
    analysis = analysis_of(table)
    return result_of(folder, table, analysis, name="new", question="What comes of it?", facts=facts_of(runs))


ALL = {one.__name__: one for one in (two_arms, factorial, sobol, many, nothing_yet)}
