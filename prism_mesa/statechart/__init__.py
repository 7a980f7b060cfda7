"""Statecharts: the engine, its checks and pictures. `__init__.pyi` lists the names.

You can also import `Reasoner`, which is defined in `prism_mesa.reasoner`, from here.
"""

from importlib import import_module
from typing import Any

import lazy_loader

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    return import_module("prism_mesa.reasoner").Reasoner if name == "Reasoner" else _attribute(name)
