"""The inputs of the page: names, ranges and values, and the configuration that results from changed values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

import yaml

from prism_mesa.errors import ConfigError
from prism_mesa.params import leaf_values, list_leaves, merge_values, nest_keys, validate_params
from prism_mesa.social.params import CHANGEABLE, FEED_MODES, SocialParams
from prism_mesa.social.params.interventions import acts_by_key

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


ERROR_PREFIX: Final = "input: "
_ACTS: Final = tuple(key for key in acts_by_key() if key != "set")
"""Acts of the platform, which the page takes as YAML."""
INTERVENTION: Final = ("intervention.at", "intervention.until", "intervention.key", "intervention.value")
"""Inputs that together describe an intervention."""
NO_KEY: Final = "(none)"
_RUN, _FEED, _AGENTS, _NETWORK = "Run", "Feed", "Agents", "Network"
_ORACLE, _INTERVENTION = "Oracle and content", "Intervention"


def _choices(key: str) -> tuple[str, ...]:
    """Return the allowed values of a parameter that has only a few; "null" stands for None."""
    annotation: Any = SocialParams
    for name in key.split("."):
        annotation = annotation.model_fields[name].annotation
    return tuple(_literals(annotation))


def _literals(annotation: Any) -> Iterator[str]:
    """Yield the strings that a type allows, and "null" if it allows None."""
    for part in get_args(getattr(annotation, "__value__", annotation)):  # unwrap a type alias
        if isinstance(part, str):
            yield part
        else:
            yield from ["null"] if part is type(None) else _literals(part)


def make_inputs(config: SocialParams) -> tuple[Input, ...]:
    """Return the inputs of a configuration, except for values that come from a file, such as agents from edges."""
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
        _slider(_RUN, "rounds", "Rounds", 1, max(500, config.rounds)),
        *([_slider(_RUN, "agents.n", "Agents", 10, max(5000, config.agents.n), 10)] if is_drawn else []),
        Input(_FEED, "feed.mode", "Ranking", "select", modes),
        Input(_FEED, "feed.attribute", "Groups by attribute", "select", groups),
        _slider(_FEED, "feed.candidates.out_of_network", "Posts from outside the network", 0, 100),
        _slider(_FEED, "feed.size", "Posts in a feed", 1, 500),
        Input(_AGENTS, "agents.threshold_mean", "Engagement threshold, mean", "slider", (), 0, 1, 0.001),
        Input(_AGENTS, "agents.threshold_sd", "Engagement threshold, sd", "slider", (), 0, 0.5, 0.001),
        Input(_AGENTS, "agents.band", "Band in which the choice is open", "slider", (), 0, 0.2, 0.001),
        Input(_AGENTS, "agents.activity", "Activity (online in a round)", "slider", (), 0, 1, 0.005),
        Input(_AGENTS, "agents.post_rate", "Post rate", "slider", (), 0, 1, 0.005),
        *(network_inputs if is_drawn else ()),
        _select_input(_NETWORK, "network.dynamics", "Dynamics"),
        Input(_ORACLE, "statechart.oracle_enabled", "Ask about open choices", "check"),
        _select_input(_ORACLE, "reasoner.kind", "Oracle"),
        _select_input(_ORACLE, "reasoner.answer", "Form of the answer", unset="by the oracle"),
        _select_input(_ORACLE, "reasoner.fallback", "Fallback"),
        Input(_ORACLE, "reasoner.max_calls", "Maximum calls (empty: no limit)", "text"),
        _select_input(_ORACLE, "content", "Texts of replies and reshares"),
        Input(_INTERVENTION, "intervention.key", "Setting that changes", "select", (NO_KEY, *CHANGEABLE, *_ACTS)),
        Input(_INTERVENTION, "intervention.value", "New value", "text"),
        Input(_INTERVENTION, "intervention.at", "From round", "text"),
        Input(_INTERVENTION, "intervention.until", "Until before round (empty: to the end)", "text"),
    )


def _slider(group: str, key: str, label: str, low: int, high: int, step: int = 1) -> Input:
    return Input(group, key, label, "slider", (), low, high, step)


def _select_input(group: str, key: str, label: str, unset: str = "none") -> Input:
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
    """Return a configuration with the changed inputs, and the reasons why inputs were left out, by key.

    If inputs are invalid only together (a ranking by groups without an attribute), the later ones are left out.
    """
    changed_values = {key: values[key] for key in changed_keys(values, input_values(config))}
    intervention = _intervention(values) if changed_values.get("intervention.key", NO_KEY) != NO_KEY else None
    faults: dict[str, str] = {}
    remaining: dict[str, Any] = {}
    for key in (key for key in changed_values if key not in INTERVENTION):
        try:
            remaining[key] = _parse(key, changed_values[key])
        except ConfigError as error:
            faults[key] = str(error)
    params = _changed_config(config, remaining, intervention)
    if isinstance(params, SocialParams):
        return params, faults
    accepted: dict[str, Any] = {}
    while valid_keys := [
        key for key in remaining if isinstance(_changed_config(config, {**accepted, key: remaining[key]}), SocialParams)
    ]:
        accepted[valid_keys[0]] = remaining.pop(valid_keys[0])  # this may make another input valid
    faults |= {key: str(_changed_config(config, {**accepted, key: value})) for key, value in remaining.items()}
    params = _changed_config(config, accepted, intervention)
    if isinstance(params, ConfigError):
        faults["intervention.key"] = str(params)
        params = _changed_config(config, accepted)
    return (params if isinstance(params, SocialParams) else config), faults


def _changed_config(
    config: SocialParams, values: Values, intervention: Mapping[str, Any] | None = None
) -> SocialParams | ConfigError:
    """Return a configuration with changed values and another intervention, or the error if it is invalid."""
    changes = nest_keys(values)
    if intervention is not None:
        changes["interventions"] = [*(existing.model_dump() for existing in config.interventions), intervention]
    try:
        return validate_params(type(config), merge_values(config.model_dump(exclude_unset=True), changes), "input")
    except ConfigError as error:
        return error


_NULLABLE: Final = {key for key, default in list_leaves(SocialParams) if default is None}


def _parse(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip()
    if key != "seed":
        return None if text in ("", "null") and key in _NULLABLE else text
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{ERROR_PREFIX}seed: {text[:60]!r} is not a whole number") from None


def _intervention(values: Values) -> dict[str, Any]:
    """Return the intervention that the inputs describe, as an entry of the configuration."""
    key, value, at, until = (str(values.get(f"intervention.{part}", "")) for part in ("key", "value", "at", "until"))
    try:
        new_value = yaml.safe_load(value)
    except yaml.YAMLError:
        new_value = value
    act = {key: new_value} if key in _ACTS else {"set": {key: new_value}}
    return {"at": at.strip(), "until": until.strip() or None, **act}


def changed_keys(values: Values, earlier_values: Values) -> Sequence[str]:
    """Return the keys of inputs whose values differ from earlier values."""
    return [key for key, value in values.items() if value != earlier_values.get(key)]
