"""The report's sections on runs: failures, deciders, and how to look at a single run."""

import shlex
from collections import Counter
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pandas as pd

from prism_mesa.errors import counted
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study import blocks as b
from prism_mesa.view.study.blocks import Block, Code, Column, Paragraph, Section, brief, marked, table
from prism_mesa.view.study.contents import condition_cells, condition_heads, run_counts, status_counts
from prism_mesa.view.study.numbers import NOTHING, count, number

_MOST_FAILURES: Final = 100
_MOST_RUNS: Final = 300


def failures_section(result: StudyResult) -> Section:
    """Return failed runs with their reasons, and numbers of missing runs by arm."""
    runs = result.table.runs
    counts = run_counts(runs)
    if counts["done"] == len(runs):
        done = Paragraph("All runs came to their end: none failed, none is missing.")
        return Section("failures", "Failures", (done,))
    blocks: list[Block] = [Paragraph(f"{status_counts(runs)}.")]
    if counts["failed"]:
        warning = (
            "Failed runs are not random: what makes a run fail may have to do with what is measured. Where one arm has "
            "lost more runs than another, read its numbers with that in mind."
        )
        blocks.append(Paragraph(warning, note=True))
    if "skipped" in counts:
        skipped = "Skipped runs belong to optional arms whose LLM was missing. All other numbers leave these arms out."
        blocks.append(Paragraph(skipped, note=True))
    rows = []
    for arm in result.table.arms:
        in_arm = runs[runs["arm"] == arm]
        by_status = run_counts(in_arm)
        rows.append((_arm(result, arm), count(len(in_arm)), *(count(by_status.get(status, 0)) for status in counts)))
    blocks.append(table((Column("arm"), *b.numeric("planned", *counts)), rows))
    if counts["failed"]:
        blocks += _failed(result)
    return Section("failures", "Failures", tuple(blocks))


def _arm(result: StudyResult, arm: str) -> str:
    return arm if len(result.table.arms) > 1 else "all runs"


def _failed(result: StudyResult) -> list[Block]:
    failed = result.table.runs[result.table.runs["status"] == "failed"]
    endings = dict(zip(result.facts["run"], result.facts["ending"], strict=True))
    rows: list[b.Row] = []
    for row in failed.head(_MOST_FAILURES).to_dict("records"):
        ending = (str(endings.get(row["run"], NOTHING)), brief(row["reason"]))
        rows.append((Code(row["run"]), *condition_cells(result.table, row), count(row["seed"]), *ending))
    heads = (*condition_heads(result.table), *b.numeric("seed"))
    blocks: list[Block] = [table((Column("run"), *heads, Column("ending"), Column("reason", long=True)), rows)]
    if len(failed) > _MOST_FAILURES:
        text = f"The first {_MOST_FAILURES} of {len(failed):,} failed runs; all are in `runs.parquet`."
        blocks.append(Paragraph(marked(text)))
    return blocks


def deciders_section(result: StudyResult) -> Section:
    """Return who decided open choices, by arm."""
    facts = result.facts.merge(result.table.runs[["run", "arm"]], on="run", how="inner")
    facts = facts[facts["ending"] == "done"]
    if facts.empty:
        return Section("deciders", "Who decided", (Paragraph("No run has been finished yet."),))
    numbers = b.numeric("open choices", "fallbacks", "fallback rate", "calls", "tokens")
    columns = (Column("arm"), Column("decided by"), *numbers, Column("answers came from"))
    by_arm = {arm: facts[facts["arm"] == arm] for arm in result.table.arms}
    rows = [(_arm(result, arm), *_deciders(of_arm)) for arm, of_arm in by_arm.items() if len(of_arm)]
    intro = (
        "What the guards of a chart leave open is a choice that somebody else makes. A fallback is an answer that no "
        "LLM gave although one was asked. Sums over all finished runs."
    )
    return Section("deciders", "Who decided", (Paragraph(intro), table(columns, rows)))


def _deciders(facts: pd.DataFrame) -> b.Row:
    n_open, fallbacks = facts["open"].sum(), facts["fallback"].sum()
    rate = f"{fallbacks / n_open:.1%}" if n_open else NOTHING
    n_runs = facts["decided_by"].value_counts()
    who = ", ".join(f"{name} ({n:,} runs)" for name, n in n_runs.items()) if len(n_runs) != 1 else str(n_runs.index[0])
    sources: Counter[str] = Counter()
    for text in facts["sources"]:
        sources.update(_sources(text))
    from_whom = ", ".join(f"{name} {int(n):,}" for name, n in sources.most_common())
    sums = (count(n_open), count(fallbacks), rate, count(facts["calls"].sum()), count(facts["tokens"].sum()))
    return (brief(who), *sums, from_whom or NOTHING)


def _sources(text: Any) -> dict[str, float]:
    try:
        sources = loads(text) if isinstance(text, str) and text else text
    except JSONDecodeError:
        return {}
    return {str(name): n for name, n in sources.items()} if isinstance(sources, dict) else {}


def how_to_see(study_dir: Path, folder: str, again: str) -> b.Words:
    """Return the command that explains an agent of a run, or that first repeats the run.

    Args:
        study_dir: The study's folder.
        folder: The run's folder, relative to the study's; blank if it was not kept.
        again: Settings that repeat the run on top of ``base.yaml``; blank if unknown.
    """
    if folder:
        return Code(f"prism why {shlex.quote(str(study_dir / folder))} AGENT")
    return Code(f"prism run {shlex.quote(str(study_dir / 'base.yaml'))} {again}") if again else b.Quiet("not kept")


def runs_section(result: StudyResult) -> Section:
    """Return a row for each run, failed runs first, with its folder and the command that explains it."""
    runs, facts = result.table.runs, result.facts.set_index("run")
    is_kept = bool((facts["folder"].fillna("") != "").any())
    blocks: list[Block] = [Paragraph(marked(_KEPT if is_kept else _NOT_KEPT.format(command=result.command)))]
    order = runs["status"].map({"failed": 0, "done": 1, "skipped": 2, "missing": 3}).sort_values(kind="stable").index
    rows = [_run_row(result, row, facts) for row in runs.loc[order].head(_MOST_RUNS).to_dict("records")]
    columns = (
        *(Column("run"), *condition_heads(result.table), *b.numeric("seed"), Column("status")),
        *(*b.numeric("CPU s", "memory, MB"), Column("to see why")),
    )
    title = counted(len(runs), "run")
    if len(runs) > _MOST_RUNS:
        title = f"{_MOST_RUNS} of {title}, failed ones first"
        blocks.append(Paragraph(marked(f"All {len(runs):,} runs are in `runs.parquet`, with every measure.")))
    blocks.append(b.Fold(title, (table(columns, rows),)))
    return Section("runs", "From here to a run", tuple(blocks))


_KEPT: Final = (
    "Each run has a folder with its tables. Typed where the study was run (after uv run if you use it), the command of "
    "a row tells what an agent was asked, saw and did, and why (AGENT: a row, id or name); `prism replay` repeats the "
    "run."
)
_NOT_KEPT: Final = (
    "Only measures were kept of these runs. Typed where the study was run (after uv run if you use it), the command of "
    "a row makes one again, equal in every table, and says which folder it is in; then `prism why FOLDER AGENT` tells "
    "why an agent acted as it did. `{command} --keep tables` keeps the folders of all."
)


def _run_row(result: StudyResult, row: dict[str, Any], facts: pd.DataFrame) -> b.Row:
    fact = facts.loc[row["run"]] if row["run"] in facts.index else pd.Series(dtype=object)
    folder, again = (text if isinstance(text := fact.get(name), str) else "" for name in ("folder", "again"))
    name = b.Link(row["run"], f"{quote(folder)}/") if folder else Code(row["run"])
    took = (number(fact.get("cpu_s"), 2), number(fact.get("peak_memory_mb"), 0))
    has_run = row["status"] in ("done", "failed")
    see = how_to_see(result.study_dir, folder, again) if has_run else b.Quiet("not run yet")
    return (name, *condition_cells(result.table, row), count(row["seed"]), row["status"], *took, see)
