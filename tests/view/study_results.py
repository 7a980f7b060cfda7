"""Made-up studies to try reports on."""

from dataclasses import replace
from itertools import product
from math import nan

import numpy as np
import pandas as pd

from prism_mesa.runs.config import Config
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import RunTable, Verdict, analyse

HOSTILE = "<script>alert('x')</script> | a\nb `c` *d* [e](http://evil.example) $f$ __g__ & h"
LONG = "the worker was gone without a word " * 17 + "end"


def make_runs(arms, factors, seeds, measures, values):
    """Return runs that all are done; `values(measure, arm, levels, number of the seed, draw)` is what they measured."""
    rows = []
    draw = np.random.default_rng(7)
    for arm, levels, (place, seed) in product(arms, factors, enumerate(seeds)):
        row = {"run": f"{arm[:12]}-{len(rows):05x}", "arm": arm, "seed": seed, "status": "done", "reason": "", **levels}
        rows.append(row | {name: values(name, arm, levels, place, draw) for name in measures})
    return pd.DataFrame(rows)


def grid(**levels):
    """Return all combinations of levels, `__` in a name for its dot."""
    names = [name.replace("__", ".") for name in levels]
    return [dict(zip(names, combination, strict=True)) for combination in product(*levels.values())]


def make_facts(runs, *, kept=True, decided_by="rule", fallback=0):
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


def make_result(
    folder, table, analysis=None, *, name="study", question="What happens?", values=None, facts=None, **more
):
    statuses = set(table.runs["status"])
    status = "incomplete" if "missing" in statuses else "failed" if "failed" in statuses else "done"
    return StudyResult(
        folder,
        name,
        question,
        status,
        values or {"question": question},
        more.get("base", Config()),
        table,
        make_facts(table.runs) if facts is None else facts,
        analyse(table, []) if analysis is None else analysis,
        more.get("notes", ()),
    )


def two_arms(folder):
    """Return a study of two arms and twenty paired seeds, whose expectations hold, stay open and fail."""
    arms, measures = ("chronological", "ranked"), ("gini_impressions", "cascade_mean", "reshares")

    def values(measure, arm, levels, place, draw):
        seed, ranked = np.sin(place * 1.7), arm == "ranked"
        return {
            "gini_impressions": 0.712 + 0.018 * seed + 0.031 * ranked + draw.normal(0, 0.008),
            "cascade_mean": 2.21 + 0.14 * seed + 0.02 * ranked + draw.normal(0, 0.09),
            "reshares": float(round(4120 + 260 * seed - 310 * ranked + draw.normal(0, 120))),
        }[measure]

    table = RunTable(make_runs(arms, [{}], range(1, 21), measures, values), arms, (), measures)
    study = {
        "question": "Does a ranked feed make attention more unequal?",
        "base": "configs/default.yaml",
        "arms": {"chronological": {"feed.mode": "chronological"}, "ranked": {"feed.mode": "x_algo"}},
        "seeds": 20,
        "measures": list(measures),
        "expect": [f"{name}: ranked > chronological" for name in measures],
    }
    analysis = analyse(table, study["expect"])
    return make_result(folder, table, analysis, name="feeds", question=study["question"], values=study)


def factorial(folder):
    """Return a 2 x 2 study without arms, of which runs failed and are missing."""
    measures = ("cascade_mean", "engagement_per_impression")

    def values(measure, arm, levels, place, draw):
        media, ranked = levels["posts.media_share"] == 0.6, levels["feed.mode"] == "x_algo"
        size = 2.1 + 0.2 * media + 0.1 * ranked + 0.35 * media * ranked + 0.1 * np.cos(place) + draw.normal(0, 0.08)
        return size if measure == "cascade_mean" else 0.0123 + 0.002 * media + draw.normal(0, 0.0006)

    levels = grid(posts__media_share=[0.1, 0.6], feed__mode=["chronological", "x_algo"])
    runs = make_runs(("all",), levels, range(1, 26), measures, values)
    for place, reason in ((3, "timeout: 600 s are over"), (55, HOSTILE), (77, LONG)):
        runs.loc[place, ["status", "reason"]] = ["failed", reason]
    runs.loc[[98, 99], "status"] = "missing"
    runs.loc[[3, 55, 77, 98, 99], list(measures)] = nan
    table = RunTable(runs, ("all",), ("posts.media_share", "feed.mode"), measures)
    facts = make_facts(runs, kept=False, decided_by="llm SmolLM2-135M", fallback=10)
    question = "Do media make cascades larger, and does a ranked feed make more of that?"
    base = Config(agents={"n": 500}, rounds=50, network={"kind": "stochastic_block"})
    notes = ("2 runs of an earlier version of this study are stale: they are kept, and not counted.",)
    return make_result(folder, table, name="media", question=question, facts=facts, base=base, notes=notes)


def sobol(folder, n=64, index="st"):
    """Return a sampled study of three factors, of Sobol's design or, with ``index="mu_star"``, of Morris's."""
    factors, measures = ("agents.band", "agents.activity", "feed.size"), ("reshares", "gini_impressions")
    draw = np.random.default_rng(3)
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

    runs = make_runs(("all",), points, [1], measures, values)
    design = "sobol" if index == "st" else "morris"
    sampling = {"seed": 1, "n": n, "problem": {"num_vars": 3}}
    table = RunTable(runs, ("all",), factors, measures, design, True, sampling)
    shares = {"agents.band": (0.31, 0.44), "agents.activity": (0.36, 0.49), "feed.size": (0.11, 0.12)}
    kinds = ("s1", "st") if index == "st" else ("mu_star", "sigma", "mu")
    rows = [
        (measure, factor, kind, shares[factor][place % 2])
        for measure, factor, (place, kind) in product(measures, factors, enumerate(kinds))
    ]
    frame = pd.DataFrame(rows, columns="measure factor index value".split())
    frame = frame.assign(low=frame["value"] - 0.06, high=frame["value"] + 0.06)
    frame.loc[frame["index"].isin(["sigma", "mu"]), ["low", "high"]] = nan
    question = "Which settings matter for how much is reshared?"
    analysis = replace(analyse(replace(table, design="seeds"), []), sensitivity=frame)
    return make_result(folder, table, analysis, name="sweep", question=question)


def many(folder, seeds=3):
    """Return a study of twelve arms and three factors, with long names and whatever somebody may write."""
    long_names = [f"a rather long name of an arm, number {n} of twelve, as people write them" for n in range(2, 13)]
    arms = (HOSTILE, *long_names)
    measures = ("reshares", "my_measures:toxicity_of_what_is_passed_on", "module:measure")

    def values(measure, arm, levels, place, draw):
        return arms.index(arm) * 0.1 + levels["agents.band"] * 5 + np.sin(place) + draw.normal(0, 0.3)

    levels = grid(agents__band=[0.02, 0.1], feed__mode=["random", "x_algo"], feed__size=[5, 10])
    runs = make_runs(arms, levels, range(1, seeds + 1), measures, values)
    runs["run"] = [f"{place:012x}" for place in range(len(runs))]
    runs.loc[::17, ["status", "reason"]] = ["failed", LONG]
    runs.loc[::17, list(measures)] = nan
    table = RunTable(runs, arms, ("agents.band", "feed.mode", "feed.size"), measures)
    verdict = Verdict(
        f"reshares: {HOSTILE} > x", "open", nan, (nan, nan), nan, nan, 0, 9, "none", f"No pairs: {HOSTILE}"
    )
    study = {
        "question": HOSTILE,
        "arms": {arm: {"feed": {"mode": "x_algo"}, "agents.n": n} for n, arm in enumerate(arms, 9)},
    }
    analysis = replace(analyse(table, []), expectations=(verdict,), notes=("intervals of 3 conditions are wide",))
    facts, notes = make_facts(runs, decided_by=HOSTILE), (HOSTILE, "plain")
    return make_result(folder, table, analysis, name="many", question=HOSTILE, values=study, facts=facts, notes=notes)


def nothing_yet(folder):
    """Return a study of one seed of which nothing has been run."""
    runs = make_runs(("a", "b"), [{}], [1], ("reshares",), lambda *_: nan).assign(status="missing")
    table = RunTable(runs, ("a", "b"), (), ("reshares",))
    return make_result(folder, table, name="new", question="What comes of it?", facts=make_facts(runs))


ALL = {study.__name__: study for study in (two_arms, factorial, sobol, many, nothing_yet)}
