"""Your own objects that a configuration names as ``module:object``."""

from importlib import import_module
from typing import Any

from prism_mesa.errors import ConfigError, PrismError
from prism_mesa.social.params import SocialParams


def find_user_objects(params: SocialParams) -> dict[str, str]:
    """Return the objects that a configuration names (``module:object``), by key."""
    names = {"statechart.chart": params.statechart.chart}
    modes = {"feed.mode": params.feed.mode}
    modes |= {
        f"interventions.{i}.set.feed.mode": str(act.set.get("feed.mode", ""))
        for i, act in enumerate(params.interventions)
    }
    names |= {key: mode for key, mode in modes.items() if ":" in mode}
    names |= {"opinions.rule": params.opinions.user_rule}
    names |= {f"accounts.{i}.chart": account.chart for i, account in enumerate(params.accounts)}
    names |= {f"attributes.{name}.function": attribute.function for name, attribute in params.attributes.items()}
    return {key: object_name for key, object_name in names.items() if object_name is not None}


def load_object(key: str, object_name: str, example: str) -> tuple[Any, dict[str, Any]]:
    """Return the object that ``module:object`` names (None if it does not exist), and all names of its module.

    Error messages quote the dotted `key` and an `example` of its value.

    Raises:
        ConfigError: If there is no such module, or it cannot be imported.
    """
    module_name, _, name = object_name.partition(":")
    prefix = f"{key}: {object_name}"
    if not (module_name and name):
        raise ConfigError(f"{prefix}: write it as module:object, for example {example}")
    try:
        module = import_module(module_name)
    except PrismError:
        raise
    except ImportError as error:
        raise ConfigError(f"{prefix}: cannot import {module_name!r}: {error}") from None
    except Exception as error:  # user code may raise anything
        raise ConfigError(f"{prefix}: importing {module_name!r} raised {type(error).__name__}: {error}") from error
    return getattr(module, name, None), vars(module)
