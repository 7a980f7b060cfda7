"""Which keys of an LLM change nothing where no LLM is asked, or one that has no use for them: for all who ask one."""

from typing import Final

from prism_mesa.llm.params import LLMParams

LIMITS: Final = tuple(f"max_{what}{when}" for when in ("", "_per_round") for what in ("calls", "tokens", "seconds"))
"""Parameters that limit what is spent."""

_PLACE: Final = ("host", "model", "model_by")
_OTHERS: Final = ("kind", "rule", "distilled", "llm_share", "asks_action", *_PLACE)


def llm_keys(kind: type[LLMParams], *without: str, place: bool = True) -> str:
    """Return the keys, with white space between them, that only say how an LLM is asked.

    Args:
        kind: Of which parameters.
        without: Names that are left out.
        place: Whether those are among them that say where and what it is.
    """
    names = [name for name in kind.model_fields if name not in _OTHERS or (place and name in _PLACE)]
    return " ".join(f"reasoner.{name}" for name in names if name not in without)


def limited(params: LLMParams) -> bool:
    """Return whether the parameters set a limit."""
    return any(getattr(params, name) is not None for name in LIMITS)


def is_for_a_server(params: LLMParams) -> bool:
    """Return whether `model` names an LLM on a server, which an embedded LLM chosen by `auto` is not."""
    return params.kind == "auto" and params.model is not None and not str(params.model).endswith(".gguf")
