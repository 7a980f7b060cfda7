"""The inputs of the page: names, ranges and values, and the configuration that changed values give."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

import yaml

from prism_mesa.errors import ConfigError
from prism_mesa.params import leaf_values, leaves, merged, nested, validated
from prism_mesa.social.params import CHANGEABLE, FEED_MODES, SocialParams

type Values = Mapping[str, Any]
"""Values of inputs, by the dotted key of a parameter or one of `INTERVENTION`."""


@dataclass(frozen=True)
class Input:
    """One input of the page: a `slider`, a `select` of `choices`, a `check` or a `text`.

    A slider goes from `low` to `high` in steps; `unset` is the label of a select's `null` choice.
    """

    group: str
    key: str
    label: str
    kind: str
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1.0
    step: float = 0.001
    unset: str = "none"


INPUT: Final = "input: "  # begins errors of inputs
INTERVENTION: Final = ("intervention.at", "intervention.until", "intervention.key", "intervention.value")
"""Inputs that together add an intervention."""
NO_KEY: Final = "(none)"
_RUN, _FEED, _AGENTS, _NETWORK = "Run", "Feed", "Agents", "Network"
_ORACLE, _INTERVENTION = "Oracle and content", "Intervention"


def _choices(key: str) -> tuple[str, ...]:
    """Return the values of a parameter that allows only a few; null stands for None."""
    kind: Any = SocialParams
    for name in key.split("."):
        kind = kind.model_fields[name].annotation
    return tuple(_literals(kind))


def _literals(kind: Any) -> Iterator[str]:
    """Yield the strings that a type allows, and null if it allows None."""
    for part in get_args(getattr(kind, "__value__", kind)):  # a type alias stands for its value
        if isinstance(part, str):
            yield part
        else:
            yield from ["null"] if part is type(None) else _literals(part)


def make_inputs(config: SocialParams) -> tuple[Input, ...]:
    """Return the inputs of a configuration, except for values from a file, such as the agents of an edge list."""
    kinds = tuple(kind for kind in _choices("network.kind") if kind != "edges")
    network_inputs = (
        Input(_NETWORK, "network.kind", "Kind", "select", kinds),
        Input(_NETWORK, "network.mean_degree", "Follows per agent", "slider", (), 1, 200, 1),
    )
    is_drawn = config.network.edges is None
    modes = tuple(dict.fromkeys([*(name for name in FEED_MODES if name != "x_algo"), config.feed.mode]))
    groups = ("null", *(name for name, params in config.attributes.items() if params.of == "agent"))
    return (
        Input(_RUN, "seed", "Seed", "text"),
        _count(_RUN, "rounds", "Rounds", 1, max(500, config.rounds)),
        *([_count(_RUN, "agents.n", "Agents", 10, max(5000, config.agents.n), 10)] if is_drawn else []),
        Input(_FEED, "feed.mode", "Ranking", "select", modes),
        Input(_FEED, "feed.attribute", "Groups by attribute", "select", groups),
        _count(_FEED, "feed.candidates.out_of_network", "Posts from outside the network", 0, 100),
        _count(_FEED, "feed.size", "Posts in a feed", 1, 500),
        Input(_AGENTS, "agents.threshold_mean", "Engagement threshold, mean", "slider", (), 0, 1, 0.001),
        Input(_AGENTS, "agents.threshold_sd", "Engagement threshold, sd", "slider", (), 0, 0.5, 0.001),
        Input(_AGENTS, "agents.band", "Band in which the choice is open", "slider", (), 0, 0.2, 0.001),
        Input(_AGENTS, "agents.activity", "Activity (online in a round)", "slider", (), 0, 1, 0.005),
        Input(_AGENTS, "agents.post_rate", "Post rate", "slider", (), 0, 1, 0.005),
        *(network_inputs if is_drawn else ()),
        _select(_NETWORK, "network.dynamics", "Dynamics"),
        Input(_ORACLE, "statechart.oracle_enabled", "Ask about open choices", "check"),
        _select(_ORACLE, "reasoner.kind", "Oracle"),
        _select(_ORACLE, "reasoner.answer", "Form of the answer", unset="by the oracle"),
        _select(_ORACLE, "reasoner.fallback", "Fallback"),
        Input(_ORACLE, "reasoner.max_calls", "Maximum calls (empty: no limit)", "text"),
        _select(_ORACLE, "content", "Texts of replies and reshares"),
        Input(_INTERVENTION, "intervention.key", "Setting that changes", "select", (NO_KEY, *CHANGEABLE)),
        Input(_INTERVENTION, "intervention.value", "New value", "text"),
        Input(_INTERVENTION, "intervention.at", "From round", "text"),
        Input(_INTERVENTION, "intervention.until", "Until before round (empty: to the end)", "text"),
    )


def _count(group: str, key: str, label: str, low: int, high: int, step: int = 1) -> Input:
    return Input(group, key, label, "slider", (), low, high, step)


def _select(group: str, key: str, label: str, unset: str = "none") -> Input:
    """Return the select of a parameter that allows a few values."""
    return Input(group, key, label, "select", _choices(key), unset=unset)


def input_values(config: SocialParams) -> dict[str, Any]:
    """Return the values of the inputs for a configuration."""
    parameters = leaf_values(config)
    values: dict[str, Any] = dict.fromkeys(INTERVENTION, "") | {"intervention.key": NO_KEY}
    for field in make_inputs(config):
        if field.key not in values:
            value = parameters[field.key]
            empty = "null" if field.kind == "select" else ""
            values[field.key] = empty if value is None else str(value) if field.kind in ("text", "select") else value
    return values


def apply_inputs(config: SocialParams, values: Values) -> tuple[SocialParams, dict[str, str]]:
    """Return a configuration with changed inputs, and by key the reason why an input was left out.

    If inputs are invalid only together (a ranking by groups, without an attribute), the last inputs are left out.
    """
    changed = {key: values[key] for key in changed_keys(values, input_values(config))}
    intervention = _intervention(values) if changed.get("intervention.key", NO_KEY) != NO_KEY else None
    faults: dict[str, str] = {}
    remaining: dict[str, Any] = {}
    for key in (key for key in changed if key not in INTERVENTION):
        try:
            remaining[key] = _parse(key, changed[key])
        except ConfigError as error:
            faults[key] = str(error)
    params = _with_values(config, remaining, intervention)
    if isinstance(params, SocialParams):
        return params, faults
    accepted: dict[str, Any] = {}
    while valid := [
        key for key in remaining if isinstance(_with_values(config, {**accepted, key: remaining[key]}), SocialParams)
    ]:
        accepted[valid[0]] = remaining.pop(valid[0])  # this may make another input valid
    faults |= {key: str(_with_values(config, {**accepted, key: value})) for key, value in remaining.items()}
    params = _with_values(config, accepted, intervention)
    if isinstance(params, ConfigError):
        faults["intervention.key"] = str(params)
        params = _with_values(config, accepted)
    return (params if isinstance(params, SocialParams) else config), faults


def _with_values(
    config: SocialParams, values: Values, intervention: Mapping[str, Any] | None = None
) -> SocialParams | ConfigError:
    """Return a configuration with other values and one more intervention, or the reason why it is invalid."""
    changes = nested(values)
    if intervention is not None:
        changes["interventions"] = [*(existing.model_dump() for existing in config.interventions), intervention]
    try:
        return validated(type(config), merged(config.model_dump(exclude_unset=True), changes), INPUT[:-2])
    except ConfigError as error:
        return error


_NULLABLE: Final = {key for key, default in leaves(SocialParams) if default is None}


def _parse(key: str, value: Any) -> Any:
    """Convert the value of an input to the type of its parameter."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if key != "seed":
        return None if text in ("", "null") and key in _NULLABLE else text
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{INPUT}seed: {text[:60]!r} is not a whole number") from None


def _intervention(values: Values) -> dict[str, Any]:
    """Return the intervention that the inputs describe, as an entry of the configuration."""
    key, value, at, until = (str(values.get(f"intervention.{part}", "")) for part in ("key", "value", "at", "until"))
    try:
        new_value = yaml.safe_load(value)
    except yaml.YAMLError:
        new_value = value
    return {"at": at.strip(), "until": until.strip() or None, "set": {key: new_value}}


def changed_keys(values: Values, earlier: Values) -> Sequence[str]:
    """Return the keys of inputs whose values differ from earlier values."""
    return [key for key, value in values.items() if value != earlier.get(key)]
