"""What a user can change on the page: names, ranges and values, and the parameters that changed values make."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from prism_mesa.errors import ConfigError
from prism_mesa.params import leaf_values, leaves, merged, nested, validated
from prism_mesa.social.params import CHANGEABLE, FEED_MODES, SocialParams

type Values = Mapping[str, Any]
"""Changed inputs: dotted key of a parameter, or one of `INTERVENTION`, to what was put in."""


@dataclass(frozen=True)
class Input:
    """One input of the page.

    Attributes:
        key: Dotted key of a parameter, or one of `INTERVENTION`.
        kind: `slider`, `select`, `check`, `number` or `text`.
        choices: Of a select.
        low: Lower end of a slider; `high` the upper one, `step` between its values.
        is_whole: Whether it takes whole numbers alone.
        unset: What the choice `null` of a select is called.
    """

    group: str
    key: str
    label: str
    kind: str
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1.0
    step: float = 0.001
    is_whole: bool = False
    unset: str = "none"


INPUT: Final = "input: "
"""What errors of inputs begin with."""
INTERVENTION: Final = ("intervention.at", "intervention.until", "intervention.key", "intervention.value")
"""Inputs that together make one more intervention."""
NO_KEY: Final = "(none)"
_BY_ORACLE: Final = "by the oracle"
_WORLD, _FEED, _WHO, _TIES, _ORACLE, _CHANGE = (
    *("Run", "Feed", "Agents", "Network", "Oracle and content", "Intervention"),
)


def _choices(key: str) -> tuple[str, ...]:
    """Return the values of a parameter that has a few; null stands for None."""
    kind: Any = SocialParams
    for name in key.split("."):
        kind = kind.model_fields[name].annotation
    return tuple(_values(kind))


def _values(kind: Any) -> Iterator[str]:
    """Yield the texts that a type holds, and null where it holds None."""
    kind = getattr(kind, "__value__", kind)  # what a name of a type stands for
    for part in get_args(kind):
        if isinstance(part, str):
            yield part
        else:
            yield from ["null"] if part is type(None) else _values(part)


def inputs_of(config: SocialParams) -> tuple[Input, ...]:
    """Return the inputs of a configuration; what a file gives (the agents of an edge list) has none."""
    n = (Input(_WORLD, "agents.n", "Agents", "slider", (), 10, max(5000, config.agents.n), 10, is_whole=True),)
    kinds = tuple(kind for kind in _choices("network.kind") if kind != "edges")
    drawn = (
        Input(_TIES, "network.kind", "Kind", "select", kinds),
        Input(_TIES, "network.mean_degree", "Follows per agent", "slider", (), 1, 200, 1),
    )
    is_drawn = config.network.edges is None
    modes = tuple(dict.fromkeys([*FEED_MODES[:-1], config.feed.mode]))
    return (
        Input(_WORLD, "seed", "Seed", "text"),
        Input(_WORLD, "rounds", "Rounds", "slider", (), 1, max(500, config.rounds), 1, is_whole=True),
        *(n if is_drawn else ()),
        Input(_FEED, "feed.mode", "Ranking", "select", modes),
        Input(_FEED, "feed.attribute", "Groups by attribute", "select", _attributes(config)),
        Input(
            _FEED,
            "feed.candidates.out_of_network",
            "Posts from outside the network",
            "slider",
            (),
            0,
            100,
            1,
            is_whole=True,
        ),
        Input(_FEED, "feed.size", "Posts in a feed", "slider", (), 1, 500, 1, is_whole=True),
        Input(_WHO, "agents.threshold_mean", "Engagement threshold, mean", "slider", (), 0, 1, 0.001),
        Input(_WHO, "agents.threshold_sd", "Engagement threshold, sd", "slider", (), 0, 0.5, 0.001),
        Input(_WHO, "agents.band", "Band in which the choice is open", "slider", (), 0, 0.2, 0.001),
        Input(_WHO, "agents.activity", "Activity (online in a round)", "slider", (), 0, 1, 0.005),
        Input(_WHO, "agents.post_rate", "Post rate", "slider", (), 0, 1, 0.005),
        *(drawn if is_drawn else ()),
        Input(_TIES, "network.dynamics", "Dynamics", "select", _choices("network.dynamics")),
        Input(_ORACLE, "statechart.oracle_enabled", "Ask about open choices", "check"),
        Input(_ORACLE, "reasoner.kind", "Oracle", "select", _choices("reasoner.kind")),
        Input(
            _ORACLE, "reasoner.answer", "Form of its answer", "select", _choices("reasoner.answer"), unset=_BY_ORACLE
        ),
        Input(_ORACLE, "reasoner.fallback", "Fallback", "select", _choices("reasoner.fallback")),
        Input(_ORACLE, "reasoner.max_calls", "Most calls (empty: no limit)", "text"),
        Input(_ORACLE, "content", "Words of replies and reshares", "select", _choices("content")),
        Input(_CHANGE, "intervention.key", "Setting that changes", "select", (NO_KEY, *CHANGEABLE)),
        Input(_CHANGE, "intervention.value", "New value", "text"),
        Input(_CHANGE, "intervention.at", "From round", "text"),
        Input(_CHANGE, "intervention.until", "Until before round (empty: to the end)", "text"),
    )


def _attributes(config: SocialParams) -> tuple[str, ...]:
    return ("null", *(name for name, own in config.attributes.items() if own.of == "agent"))


def values_of(config: SocialParams) -> dict[str, Any]:
    """Return what the inputs of a configuration hold at first, as `Input.kind` has it."""
    of_keys = leaf_values(config)
    found: dict[str, Any] = dict.fromkeys(INTERVENTION, "") | {"intervention.key": NO_KEY}
    for one in inputs_of(config):
        if one.key not in found:
            value = of_keys[one.key]
            empty = "null" if one.kind == "select" else ""
            found[one.key] = empty if value is None else str(value) if one.kind in ("text", "select") else value
    return found


def with_inputs(config: SocialParams, values: Values) -> tuple[SocialParams, dict[str, str]]:
    """Return a configuration with changed inputs, and what is wrong with those that were left out, by key.

    An input that is wrong is left out and all others count. Where several are wrong only together (a ranking that
    needs groups, no attribute named) the last of them are left out.
    """
    given = {key: value for key, value in values.items() if value != values_of(config).get(key)}
    own = _intervention(values) if given.get("intervention.key", NO_KEY) != NO_KEY else None
    faults: dict[str, str] = {}
    flat = {}
    for key, value in given.items():
        if key not in INTERVENTION:
            try:
                flat[key] = _read(key, value)
            except ConfigError as error:
                faults[key] = str(error)
    made = _made(config, flat, own)
    if isinstance(made, SocialParams):
        return made, faults
    kept: dict[str, Any] = {}
    waiting = dict(flat)
    while waiting:  # one may only be right after another one that comes later
        fits = [key for key, value in waiting.items() if isinstance(_made(config, {**kept, key: value}), SocialParams)]
        if not fits:
            break
        kept[fits[0]] = waiting.pop(fits[0])
    faults |= {key: str(_made(config, {**kept, key: value})) for key, value in waiting.items()}
    made = _made(config, kept, own)
    if isinstance(made, SocialParams):
        return made, faults
    alone = _made(config, kept)
    return (alone if isinstance(alone, SocialParams) else config), faults | {"intervention.key": str(made)}


def _made(config: SocialParams, flat: Values, own: Mapping[str, Any] | None = None) -> SocialParams | ConfigError:
    """Return a configuration with other values, or why there is none."""
    changes: dict[str, Any] = dict(flat)
    if own is not None:
        held = [one.model_dump() for one in config.interventions]
        changes["interventions"] = [*held, own]
    try:
        return validated(type(config), merged(config.model_dump(exclude_unset=True), nested(changes)), INPUT[:-2])
    except ConfigError as error:
        return error


def _read(key: str, value: Any) -> Any:
    """Return what an input holds as the parameter takes it."""
    if key == "seed":
        try:
            return int(str(value).strip())
        except ValueError:
            raise ConfigError(f"{INPUT}seed: {str(value)[:60]!r} is no whole number") from None
    if isinstance(value, str):
        text = value.strip()
        return None if text in ("", "null") and _can_be_none(key) else text
    return value


def _can_be_none(key: str) -> bool:
    return key in _NULLABLE


_NULLABLE: Final = {key for key, default in leaves(SocialParams) if default is None}


def _intervention(values: Values) -> dict[str, Any]:
    """Return the intervention that the inputs make, as a configuration holds it."""
    import yaml

    said = str(values.get("intervention.value", ""))
    try:
        value = yaml.safe_load(said)
    except yaml.YAMLError:
        value = said
    until = str(values.get("intervention.until", "")).strip()
    return {
        "at": str(values.get("intervention.at", "")).strip(),
        "until": until or None,
        "set": {values["intervention.key"]: value},
    }


def changed_keys(now: Values, then: Values) -> Sequence[str]:
    """Return the inputs that hold something else now than when the model on show was made."""
    return [key for key, value in now.items() if value != then.get(key)]
