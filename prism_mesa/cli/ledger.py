"""Commands that look into a ledger."""

from pathlib import Path
from typing import Annotated

import typer

from prism_mesa.cli.arguments import AsJson
from prism_mesa.terminal import show_json, show_line

ledger = typer.Typer(help="Look into a ledger: what an LLM was asked, and answered.")
LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="a decisions.sqlite, or the folder of a run")]


@ledger.command()
def stats(file: LedgerFile, as_json: AsJson = False) -> None:
    """Count answers, questions, fallbacks, tokens and latencies."""
    from prism_mesa.runs.ledgers import ledger_stats

    found = ledger_stats(file)
    if as_json:
        show_json(found)
        return
    for name, value in found.items():
        text = ", ".join(f"{n:,} {what}" for what, n in value.items()) or 0 if isinstance(value, dict) else value
        show_line(f"{name:<12}{text}")


@ledger.command()
def export(
    file: LedgerFile,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="folder for the files; by default that of the ledger")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a ledger as answers.parquet and asked.parquet."""
    from prism_mesa.runs.ledgers import export_ledger

    files = export_ledger(file, out)
    if as_json:
        show_json({table: {"file": str(path), "rows": rows} for table, (path, rows) in files.items()})
    else:
        for path, rows in files.values():
            show_line(f"{rows:>10,} rows  {path}")
