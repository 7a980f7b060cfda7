"""The report's sections on runs: failures, who decided open choices, and how to examine a single run."""

import shlex
from collections import Counter
from json import JSONDecodeError, loads
from typing import Any, Final
from urllib.parse import quote

import pandas as pd

from prism_mesa.errors import format_count
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study import blocks as doc
from prism_mesa.view.study.blocks import Block, Code, Column, Paragraph, Section, brief, code_spans, simple_table
from prism_mesa.view.study.contents import condition_cells, condition_headers, run_counts, status_counts
from prism_mesa.view.study.numbers import NO_VALUE, number

_MAX_FAILURES: Final = 100
_MAX_RUNS: Final = 300


def failures_section(result: StudyResult) -> Section:
    """Return the section on failed runs, with reasons, and on the runs of each arm by status."""
    runs = result.table.runs
    counts = run_counts(runs)
    if counts["done"] == len(runs):
        return Section("failures", "Failures", (Paragraph("All runs finished: none failed, and none is missing."),))
    blocks: list[Block] = [Paragraph(f"{status_counts(runs)}.")]
    if counts["failed"]:
        warning = (
            "Failed runs are not random: the cause of a failure may also affect the measures. If arms have lost "
            "different numbers of runs, interpret them with caution."
        )
        blocks.append(Paragraph(warning, note=True))
    if "skipped" in counts:
        skipped = "Skipped runs belong to optional arms whose LLM was missing. All other numbers exclude these arms."
        blocks.append(Paragraph(skipped, note=True))
    rows = []
    for arm in result.table.arms:
        by_status = run_counts(runs[runs["arm"] == arm])
        cells = (number(by_status.get(status, 0)) for status in counts)
        rows.append((_arm_label(result, arm), number(sum(by_status.values())), *cells))
    blocks.append(simple_table((Column("arm"), *doc.number_columns("planned", *counts)), rows))
    if counts["failed"]:
        blocks += _failed_blocks(result)
    return Section("failures", "Failures", tuple(blocks))


def _arm_label(result: StudyResult, arm: str) -> str:
    return arm if len(result.table.arms) > 1 else "all runs"


def _failed_blocks(result: StudyResult) -> list[Block]:
    failed = result.table.runs[result.table.runs["status"] == "failed"]
    endings = dict(zip(result.facts["run"], result.facts["ending"], strict=True))
    rows: list[doc.Row] = []
    for row in failed.head(_MAX_FAILURES).to_dict("records"):
        failure = (str(endings.get(row["run"], NO_VALUE)), brief(row["reason"]))
        rows.append((Code(row["run"]), *condition_cells(result.table, row), f"{row['seed']:,}", *failure))
    headers = (Column("run"), *condition_headers(result.table), *doc.number_columns("seed"))
    blocks: list[Block] = [simple_table((*headers, Column("ending"), Column("reason", long=True)), rows)]
    if len(failed) > _MAX_FAILURES:
        text = f"The first {_MAX_FAILURES} of {len(failed):,} failed runs; all are in `runs.parquet`."
        blocks.append(Paragraph(code_spans(text)))
    return blocks


def deciders_section(result: StudyResult) -> Section:
    """Return the section on who decided the open choices, by arm."""
    facts = result.facts.merge(result.table.runs[["run", "arm"]], on="run", how="inner")
    facts = facts[facts["ending"] == "done"]
    if facts.empty:
        return Section("deciders", "Who decided", (Paragraph("No run has been finished yet."),))
    numbers = doc.number_columns("open choices", "fallbacks", "fallback rate", "calls", "tokens")
    columns = (Column("arm"), Column("decided by"), *numbers, Column("answers came from"))
    by_arm = {arm: facts[facts["arm"] == arm] for arm in result.table.arms}
    rows = [(_arm_label(result, arm), *_decider_cells(group)) for arm, group in by_arm.items() if len(group)]
    intro = (
        "Open choices are those that the guards of a chart do not settle. A fallback replaces an answer that the LLM "
        "did not give. Sums over all finished runs."
    )
    return Section("deciders", "Who decided", (Paragraph(intro), simple_table(columns, rows)))


def _decider_cells(facts: pd.DataFrame) -> doc.Row:
    n_open, fallbacks, calls, tokens = facts[["open", "fallback", "calls", "tokens"]].sum()
    n_runs = facts["decided_by"].value_counts()
    deciders = ", ".join(f"{name} ({n:,} runs)" for name, n in n_runs.items()) if len(n_runs) > 1 else n_runs.index[0]
    sources: Counter[str] = Counter()
    for text in facts["sources"]:
        try:
            sources.update(loads(text))
        except (JSONDecodeError, TypeError):  # a damaged or missing value
            continue
    by_source = ", ".join(f"{name} {int(n):,}" for name, n in sources.most_common())
    rate = f"{fallbacks / n_open:.1%}" if n_open else NO_VALUE
    return (
        brief(deciders),
        number(n_open),
        number(fallbacks),
        rate,
        number(calls),
        number(tokens),
        by_source or NO_VALUE,
    )


def runs_section(result: StudyResult) -> Section:
    """Return a section with a row for each run, failed runs first, with a command that explains or repeats it."""
    runs, facts = result.table.runs, result.facts.set_index("run")
    has_folders = bool((facts["folder"].fillna("") != "").any())
    text = _FOLDERS_NOTE if has_folders else _NO_FOLDERS_NOTE.format(command=result.command)
    blocks: list[Block] = [Paragraph(code_spans(text))]
    order = runs["status"].map({"failed": 0, "done": 1, "skipped": 2, "missing": 3}).sort_values(kind="stable").index
    rows = [_run_row(result, row, facts) for row in runs.loc[order].head(_MAX_RUNS).to_dict("records")]
    headers = (Column("run"), *condition_headers(result.table), *doc.number_columns("seed"), Column("status"))
    columns = (*headers, *doc.number_columns("CPU s", "memory, MB"), Column("command"))
    title = format_count(len(runs), "run")
    if len(runs) > _MAX_RUNS:
        title = f"{_MAX_RUNS} of {title}, failed ones first"
        blocks.append(Paragraph(code_spans(f"All {len(runs):,} runs are in `runs.parquet`, with every measure.")))
    blocks.append(doc.Fold(title, (simple_table(columns, rows),)))
    return Section("runs", "Single runs", tuple(blocks))


_FOLDERS_NOTE: Final = (
    "Each run has a folder with its tables. The command of a row explains what an agent was asked, saw and did, and "
    "why (AGENT: a row, id or name). Type it where you ran the study, after `uv run` if you use it. `prism replay` "
    "repeats the run."
)
_NO_FOLDERS_NOTE: Final = (
    "Only the measures of these runs were kept. The command of a row repeats the run with equal tables and prints its "
    "folder. Type it where you ran the study, after `uv run` if you use it. Then `prism why FOLDER AGENT` explains why "
    "an agent acted as it did. `{command} --keep tables` keeps the folders of all runs."
)


def _run_row(result: StudyResult, row: dict[str, Any], facts: pd.DataFrame) -> doc.Row:
    fact = facts.loc[row["run"]] if row["run"] in facts.index else pd.Series(dtype=object)
    folder, repeat_arguments = (text if isinstance(text := fact.get(name), str) else "" for name in ("folder", "again"))
    name: doc.Words = Code(row["run"])
    command: doc.Words = doc.Quiet("not kept")
    if row["status"] not in ("done", "failed"):
        command = doc.Quiet("not run yet")
    elif folder:
        name = doc.Link(row["run"], f"{quote(folder)}/")
        command = Code(f"prism why {shlex.quote(str(result.study_dir / folder))} AGENT")
    elif repeat_arguments:
        command = Code(f"prism run {shlex.quote(str(result.study_dir / 'base.yaml'))} {repeat_arguments}")
    costs = (number(fact.get("cpu_s"), 2), number(fact.get("peak_memory_mb")))
    return (name, *condition_cells(result.table, row), f"{row['seed']:,}", row["status"], *costs, command)
