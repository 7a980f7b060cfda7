"""The end of a report: notes, versions, the study file, and how to repeat it all."""

import json
from datetime import datetime
from typing import Any

import yaml

from prism_mesa.errors import said_openly
from prism_mesa.runs.process.machine import provenance
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study.blocks import Block, Bullets, Code, Facts, Fold, Listing, Section, Words
from prism_mesa.view.study.numbers import NOTHING


def closing_section(result: StudyResult, written: datetime) -> Section:
    """Return notes, versions and the study file."""
    blocks: list[Block] = []
    if result.notes:
        blocks.append(Bullets(tuple(result.notes)))
    made = _made(result)
    packages = ", ".join(f"{name} {version}" for name, version in made.get("packages", {}).items() if version)
    blocks.append(
        Facts(
            (
                ("Begun", f"{str(made.get('started', NOTHING))[:16].replace('T', ' ')} UTC, with the versions below"),
                ("Report", f"written {written:%Y-%m-%d %H:%M} UTC"),
                ("Packages", packages or NOTHING),
                ("Python", f"{made.get('python', NOTHING)} on {made.get('machine', NOTHING)}"),
                ("Revision", Code(str(made["git"])) if made.get("git") else "not from a checkout"),
            )
        )
    )
    blocks.append(Fold("The study file", (Listing(study_text(result)),)))
    return Section("notes", "Notes and versions", tuple(blocks))


def _made(result: StudyResult) -> dict[str, Any]:
    """Return when and with what the study was begun, as its folder has it; else what would be used now."""
    try:
        made = json.loads((result.study_dir / "study.json").read_text(encoding="utf-8"))["made"]
    except (OSError, ValueError, KeyError, TypeError):
        made = None
    return made if isinstance(made, dict) else provenance()


def study_text(result: StudyResult) -> str:
    """Return the study file as it stands in the study's folder; where there is none, its values."""
    file = result.study_dir / "study.yaml"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    return said_openly(yaml.safe_dump(result.values, sort_keys=False, allow_unicode=True, width=100))


def footer(result: StudyResult) -> Words:
    """Return how to repeat the study."""
    return (
        "To repeat or continue this study: ",
        Code(result.command),
        ". Runs that are there are not run again. One line of pandas reads all: ",
        Code("pandas.read_parquet('runs.parquet')"),
        ".",
    )
