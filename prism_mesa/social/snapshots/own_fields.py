"""Fields that users give a model or an agent, in a snapshot."""

from collections.abc import Container, Mapping
from typing import Any

from prism_mesa.errors import DataError, NotRestorableError
from prism_mesa.snapshot import Plain, restore_object, state_of


def is_simple(value: object) -> bool:
    """Return whether a value is held as it is: a number, a text, a truth value, None. Shared, it cannot change."""
    return value is None or type(value) in (bool, int, float, str)


def own_fields(thing: object, known: Container[str]) -> dict[str, Any]:
    """Return the fields of an object but for those that are known."""
    return {name: value for name, value in vars(thing).items() if name not in known}


def fields_of_model(model: object, known: Container[str]) -> dict[str, Plain]:
    """Return what users gave a model: simple fields, and what other ones say themselves of their state.

    Raises:
        NotRestorableError: If another one has no `snapshot` and `restore`.
    """
    own = own_fields(model, known)
    try:
        said = {name: state_of(value) for name, value in own.items() if not is_simple(value)}
    except NotRestorableError as error:
        names = ", ".join(name for name, value in own.items() if not is_simple(value))
        raise NotRestorableError(f"the model's {names}: {error}") from None
    return {"simple": {name: value for name, value in own.items() if is_simple(value)}, "said": said}


def set_fields_of_model(model: object, kept: Mapping[str, Plain]) -> None:
    """Bring back what `fields_of_model` returned.

    Raises:
        DataError: If a field that said something is not there.
    """
    vars(model).update(kept["simple"])
    for name, state in kept["said"].items():
        if name not in vars(model):
            raise DataError(f"the model: {name!r:.40} is no field of its own")
        restore_object(vars(model)[name], state)
