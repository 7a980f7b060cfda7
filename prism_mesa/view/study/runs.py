"""The runs of a study: which failed and why, who decided in them, and the way from a row of the report to a run."""

import shlex
from collections import Counter
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pandas as pd

from prism_mesa.errors import counted
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study.blocks import Block, Code, Column, Fold, Link, Paragraph, Quiet, Section, Words, brief, table
from prism_mesa.view.study.contents import condition_cells, condition_heads, run_counts, runs_in_words
from prism_mesa.view.study.numbers import NOTHING, count, number

_MOST_FAILURES: Final = 100
_MOST_RUNS: Final = 300


def failures_section(result: StudyResult) -> Section:
    """Return the runs that failed with their reasons, and what is missing per arm."""
    runs = result.table.runs
    counts = run_counts(runs)
    blocks: list[Block] = []
    if counts["done"] == len(runs):
        return Section(
            "failures", "Failures", (Paragraph("All runs came to their end: none failed, none is missing."),)
        )
    blocks.append(Paragraph(f"{runs_in_words(runs)}."))
    if counts["failed"]:
        said = (
            "Failed runs are not random: what makes a run fail may have to do with what is measured. Where one arm has "
            "lost more runs than another, read its numbers with that in mind."
        )
        blocks.append(Paragraph(said, note=True))
    if "skipped" in counts:
        said = "Skipped runs belong to optional arms whose LLM was missing. All other numbers leave these arms out."
        blocks.append(Paragraph(said, note=True))
    columns = (Column("arm"), *(Column(name, number=True) for name in ("planned", *counts)))
    rows: list[tuple[Words, ...]] = []
    for arm in result.table.arms:
        own = runs[runs["arm"] == arm]
        found = run_counts(own)
        rows.append((_arm(result, arm), *map(count, (len(own), *(found.get(status, 0) for status in counts)))))
    blocks.append(table(columns, rows))
    if counts["failed"]:
        blocks += _failed(result)
    return Section("failures", "Failures", tuple(blocks))


def _arm(result: StudyResult, arm: str) -> str:
    return arm if len(result.table.arms) > 1 else "all runs"


def _failed(result: StudyResult) -> list[Block]:
    runs = result.table.runs
    failed = runs[runs["status"] == "failed"]
    endings = dict(zip(result.facts["run"], result.facts["ending"], strict=True))
    rows: list[tuple[Words, ...]] = [
        (
            Code(row["run"]),
            *condition_cells(result.table, row),
            count(row["seed"]),
            str(endings.get(row["run"], NOTHING)),
            brief(row["reason"]),
        )
        for row in failed.head(_MOST_FAILURES).to_dict("records")
    ]
    heads = condition_heads(result.table)
    columns = (Column("run"), *heads, Column("seed", number=True), Column("ending"), Column("reason", long=True))
    blocks: list[Block] = [table(columns, rows)]
    if len(failed) > _MOST_FAILURES:
        told = f"The first {_MOST_FAILURES} of {len(failed):,} failed runs; all are in "
        blocks.append(Paragraph((told, Code("runs.parquet"), ".")))
    return blocks


def deciders_section(result: StudyResult) -> Section:
    """Return who decided what the charts left open, per arm."""
    facts = result.facts.merge(result.table.runs[["run", "arm"]], on="run", how="inner")
    facts = facts[facts["ending"] == "done"]
    if facts.empty:
        return Section("deciders", "Who decided", (Paragraph("No run has been finished yet."),))
    titles = ("open choices", "fallbacks", "fallback rate", "calls", "tokens")
    columns = (
        Column("arm"),
        Column("decided by"),
        *(Column(name, number=True) for name in titles),
        Column("answers came from"),
    )
    rows: list[tuple[Words, ...]] = []
    for arm in result.table.arms:
        own = facts[facts["arm"] == arm]
        if len(own):
            rows.append((_arm(result, arm), *_decided(own)))
    said = (
        "What the guards of a chart leave open is a choice that somebody else makes. A fallback is an answer that no "
        "LLM gave although one was asked. Sums over all finished runs."
    )
    return Section("deciders", "Who decided", (Paragraph(said), table(columns, rows)))


def _decided(facts: pd.DataFrame) -> tuple[Words, ...]:
    opened, fallbacks = facts["open"].sum(), facts["fallback"].sum()
    rate = f"{fallbacks / opened:.1%}" if opened else NOTHING
    who = ", ".join(f"{name} ({n:,} runs)" for name, n in facts["decided_by"].value_counts().items())
    if facts["decided_by"].nunique() == 1:
        who = str(facts["decided_by"].iloc[0])
    sources: Counter[str] = Counter()
    for text in facts["sources"]:
        sources.update(_sources(text))
    told = ", ".join(f"{name} {int(n):,}" for name, n in sources.most_common())
    sums = (count(opened), count(fallbacks), rate, count(facts["calls"].sum()), count(facts["tokens"].sum()))
    return (brief(who), *sums, told or NOTHING)


def _sources(text: Any) -> dict[str, float]:
    try:
        found = loads(text) if isinstance(text, str) and text else text
    except JSONDecodeError:
        return {}
    return {str(name): n for name, n in found.items()} if isinstance(found, dict) else {}


def how_to_see(study_dir: Path, folder: str, again: str) -> Words:
    """Return the command that explains an agent of a run, or first makes the run again, typed where the study was run.

    Args:
        study_dir: The study's folder.
        folder: Of the run, relative to the study's; blank: it was not kept.
        again: What makes the run again on top of ``base.yaml``; blank: not known.
    """
    if folder:
        return Code(f"prism why {shlex.quote(str(study_dir / folder))} AGENT")
    return Code(f"prism run {shlex.quote(str(study_dir / 'base.yaml'))} {again}") if again else Quiet("not kept")


def runs_section(result: StudyResult) -> Section:
    """Return a row for each run with its folder and the command that explains it, failed ones first."""
    runs, facts = result.table.runs, result.facts.set_index("run")
    kept = bool(len(facts)) and bool((facts["folder"].fillna("") != "").any())
    blocks: list[Block] = [_way_in(kept, result.command)]
    order = runs["status"].map({"failed": 0, "done": 1, "skipped": 2, "missing": 3}).sort_values(kind="stable").index
    rows = [_run_row(result, row, facts) for row in runs.loc[order].head(_MOST_RUNS).to_dict("records")]
    numbers = (Column("CPU s", number=True), Column("memory, MB", number=True))
    columns = (
        Column("run"),
        *condition_heads(result.table),
        Column("seed", number=True),
        Column("status"),
        *numbers,
        Column("to see why"),
    )
    title = counted(len(runs), "run")
    if len(runs) > _MOST_RUNS:
        title = f"{_MOST_RUNS} of {title}, failed ones first"
        blocks.append(Paragraph(("All ", f"{len(runs):,} runs are in ", Code("runs.parquet"), ", with every measure.")))
    blocks.append(Fold(title, (table(columns, rows),)))
    return Section("runs", "From here to a run", tuple(blocks))


def _way_in(kept: bool, command: str) -> Paragraph:
    if kept:
        return Paragraph(
            (
                "Each run has a folder with its tables. Typed where the study was run (after uv run if you use it), "
                "the command of a row tells what an agent was asked, saw and did, and why (AGENT: a row, id or name); ",
                Code("prism replay"),
                " repeats the run.",
            )
        )
    return Paragraph(
        (
            "Only measures were kept of these runs. Typed where the study was run (after uv run if you use it), the "
            "command of a row makes one again, equal in every table, and says which folder it is in; then ",
            Code("prism why FOLDER AGENT"),
            " tells why an agent acted as it did. ",
            Code(f"{command} --keep tables"),
            " keeps the folders of all.",
        )
    )


def _run_row(result: StudyResult, row: dict[str, Any], facts: pd.DataFrame) -> tuple[Words, ...]:
    fact = facts.loc[row["run"]] if row["run"] in facts.index else pd.Series(dtype=object)
    folder = fact.get("folder")
    folder = folder if isinstance(folder, str) else ""
    name: Words = Link(row["run"], f"{quote(folder)}/") if folder else Code(row["run"])
    took = (number(fact.get("cpu_s"), 2), number(fact.get("peak_memory_mb"), 0))
    again = fact.get("again")
    see = (
        how_to_see(result.study_dir, folder, again if isinstance(again, str) else "")
        if row["status"] in ("done", "failed")
        else Quiet("not run yet")
    )
    return (name, *condition_cells(result.table, row), count(row["seed"]), row["status"], *took, see)
