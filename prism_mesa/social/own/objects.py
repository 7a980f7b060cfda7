"""Objects of a user's own that a configuration names as ``module:object``: which they are, and loading them."""

from importlib import import_module
from typing import Any

from prism_mesa.errors import ConfigError, PrismError
from prism_mesa.social.params import SocialParams


def objects_named(params: SocialParams) -> dict[str, str]:
    """Return what a configuration names as ``module:object``, by the dotted key that names it."""
    named = {"statechart.chart": params.statechart.chart}
    modes = {"feed.mode": params.feed.mode}
    modes |= {
        f"interventions.{i}.set.feed.mode": str(one.set.get("feed.mode", ""))
        for i, one in enumerate(params.interventions)
    }
    named |= {key: mode for key, mode in modes.items() if ":" in mode}
    named |= {"opinions.rule": params.opinions.user_rule}
    named |= {f"attributes.{name}.function": own.function for name, own in params.attributes.items()}
    return {key: where for key, where in named.items() if where is not None}


def load_object(key: str, where: str, example: str) -> tuple[Any, dict[str, Any]]:
    """Return the object that ``module:object`` names, None if its module has none, and all that the module has.

    Args:
        key: The dotted key that names it, for errors.
        where: What it says.
        example: What one may say, for errors.

    Raises:
        ConfigError: If there is no such module, or it cannot be imported.
    """
    module_name, _, name = where.partition(":")
    said = f"{key}: {where}"
    if not (module_name and name):
        raise ConfigError(f"{said}: write it as module:object, for example {example}")
    try:
        module = import_module(module_name)
    except PrismError:
        raise
    except ImportError as error:
        raise ConfigError(f"{said}: cannot import {module_name!r}: {error}") from None
    except Exception as error:  # a module of a user's own may fail in any way
        raise ConfigError(f"{said}: importing {module_name!r} raised {type(error).__name__}: {error}") from error
    return getattr(module, name, None), vars(module)
