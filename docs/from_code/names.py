"""The public names of packages, for mkdocstrings to describe."""

from importlib import import_module

import prism_mesa


def directives(package: str) -> str:
    """Return a directive for each public name of a package that `prism_mesa` itself does not offer."""
    names = sorted(set(import_module(package).__all__) - set(prism_mesa.__all__))
    return "\n".join(f"::: {package}.{name}\n" for name in names)
