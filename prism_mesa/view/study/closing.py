"""The end of a report: notes, versions, the study file, and how to repeat it all."""

from datetime import datetime

import yaml

from prism_mesa.runs.machine import provenance
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study.blocks import Block, Bullets, Code, Facts, Fold, Listing, Section, Words
from prism_mesa.view.study.runs import STUDY_FILE


def closing_section(result: StudyResult, written: datetime) -> Section:
    """Return notes, versions and the study file."""
    blocks: list[Block] = []
    if result.notes:
        blocks.append(Bullets(tuple(result.notes)))
    made = provenance()
    packages = ", ".join(f"{name} {version}" for name, version in made["packages"].items() if version)
    blocks.append(
        Facts(
            (
                ("Report", f"written {written:%Y-%m-%d %H:%M} UTC, with the versions below"),
                ("Packages", packages),
                ("Python", f"{made['python']} on {made['machine']}"),
                ("Revision", Code(made["git"]) if made["git"] else "not from a checkout"),
            )
        )
    )
    blocks.append(Fold("The study file", (Listing(study_text(result)),)))
    return Section("notes", "Notes and versions", tuple(blocks))


def study_text(result: StudyResult) -> str:
    """Return the study file as it stands in the study's folder; where there is none, its values."""
    file = result.study_dir / "study.yaml"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    return yaml.safe_dump(result.values, sort_keys=False, allow_unicode=True, width=100)


def footer(result: StudyResult) -> Words:
    """Return how to repeat the study."""
    return (
        "To repeat or continue this study: ",
        Code(f"prism study run {STUDY_FILE}"),
        ". Runs that are there are not run again. One line of pandas reads all: ",
        Code("pandas.read_parquet('runs.parquet')"),
        ".",
    )
