"""The ODD protocol of a configuration as a text of its own, for an archive."""

from collections.abc import Collection
from dataclasses import replace

from prism_mesa.studies.design.study_design import Worlds
from prism_mesa.view.study.blocks import Paragraph, Picture, Section
from prism_mesa.view.study.markdown import sections_as_markdown
from prism_mesa.view.study.odd.sections import PURPOSE, sections_of_worlds


def odd_text(worlds: Worlds, varied: Collection[str] = (), question: str = "", *, load: bool = False) -> str:
    """Return the ODD protocol of a run or a study as Markdown, without pictures.

    Args:
        worlds: The configurations: of a run one, whose name is empty.
        varied: Dotted keys that a study changes.
        question: What the study asks; empty for a single run.
        load: Whether modules of a user's own, which hold charts and feeds, may be imported.
    """
    asks = f" This study asks: {question}" if question else ""
    purpose = Section("odd-purpose", "1. Purpose and patterns", (Paragraph(f"{PURPOSE}.{asks}"),))
    sections = (purpose, *sections_of_worlds(worlds, varied, load=load))
    said = "The model as it is configured, by the ODD protocol (Grimm et al. 2020, doi:10.18564/jasss.4259)."
    plain = (replace(one, blocks=tuple(b for b in one.blocks if not isinstance(b, Picture))) for one in sections)
    return f"# The model (ODD protocol)\n\n{said}\n\n{sections_as_markdown(plain)}\n"
