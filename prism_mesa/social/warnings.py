"""Python warnings of a model: they point at the user's line that made it, or made its rounds happen."""

import contextlib
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from prism_mesa.errors import NotedWarning

_mesa = find_spec("mesa")  # not imported: a platform needs none
_INSIDE: Final = (
    str(Path(__file__).parent.parent),
    *(_mesa.submodule_search_locations or () if _mesa else ()),
    contextlib.__file__.removesuffix(".py"),  # a whole name is no prefix to Python 3.12
)
"""Files whose lines a warning does not point at."""


def warn(text: str) -> None:
    """Warn of what a platform says in its notes or in the summary of its run, too."""
    warnings.warn(f"SocialModel: {text}", NotedWarning, skip_file_prefixes=_INSIDE)
