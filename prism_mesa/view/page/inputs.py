"""The inputs of the page: names, ranges and values, and the configuration that changed values give."""

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
        is_whole: Whether it takes whole numbers only.
        unset: Label of a select's `null` choice.
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
    """Return the values of a parameter that allows only a few; null stands for None."""
    kind: Any = SocialParams
    for name in key.split("."):
        kind = kind.model_fields[name].annotation
    return tuple(_values(kind))


def _values(kind: Any) -> Iterator[str]:
    """Yield the strings that a type allows, and null if it allows None."""
    kind = getattr(kind, "__value__", kind)  # what a name of a type stands for
    for part in get_args(kind):
        if isinstance(part, str):
            yield part
        else:
            yield from ["null"] if part is type(None) else _values(part)


def make_inputs(config: SocialParams) -> tuple[Input, ...]:
    """Return the inputs of a configuration; values from a file, such as the agents of an edge list, have none."""
    kinds = tuple(kind for kind in _choices("network.kind") if kind != "edges")
    drawn = (
        Input(_TIES, "network.kind", "Kind", "select", kinds),
        Input(_TIES, "network.mean_degree", "Follows per agent", "slider", (), 1, 200, 1),
    )
    is_drawn = config.network.edges is None
    modes = tuple(dict.fromkeys([*(name for name in FEED_MODES if name != "x_algo"), config.feed.mode]))
    groups = ("null", *(name for name, params in config.attributes.items() if params.of == "agent"))
    return (
        Input(_WORLD, "seed", "Seed", "text"),
        _count(_WORLD, "rounds", "Rounds", 1, max(500, config.rounds)),
        *([_count(_WORLD, "agents.n", "Agents", 10, max(5000, config.agents.n), 10)] if is_drawn else []),
        Input(_FEED, "feed.mode", "Ranking", "select", modes),
        Input(_FEED, "feed.attribute", "Groups by attribute", "select", groups),
        _count(_FEED, "feed.candidates.out_of_network", "Posts from outside the network", 0, 100),
        _count(_FEED, "feed.size", "Posts in a feed", 1, 500),
        Input(_WHO, "agents.threshold_mean", "Engagement threshold, mean", "slider", (), 0, 1, 0.001),
        Input(_WHO, "agents.threshold_sd", "Engagement threshold, sd", "slider", (), 0, 0.5, 0.001),
        Input(_WHO, "agents.band", "Band in which the choice is open", "slider", (), 0, 0.2, 0.001),
        Input(_WHO, "agents.activity", "Activity (online in a round)", "slider", (), 0, 1, 0.005),
        Input(_WHO, "agents.post_rate", "Post rate", "slider", (), 0, 1, 0.005),
        *(drawn if is_drawn else ()),
        _select(_TIES, "network.dynamics", "Dynamics"),
        Input(_ORACLE, "statechart.oracle_enabled", "Ask about open choices", "check"),
        _select(_ORACLE, "reasoner.kind", "Oracle"),
        _select(_ORACLE, "reasoner.answer", "Form of its answer", unset=_BY_ORACLE),
        _select(_ORACLE, "reasoner.fallback", "Fallback"),
        Input(_ORACLE, "reasoner.max_calls", "Most calls (empty: no limit)", "text"),
        _select(_ORACLE, "content", "Words of replies and reshares"),
        Input(_CHANGE, "intervention.key", "Setting that changes", "select", (NO_KEY, *CHANGEABLE)),
        Input(_CHANGE, "intervention.value", "New value", "text"),
        Input(_CHANGE, "intervention.at", "From round", "text"),
        Input(_CHANGE, "intervention.until", "Until before round (empty: to the end)", "text"),
    )


def _count(group: str, key: str, label: str, low: int, high: int, step: int = 1) -> Input:
    return Input(group, key, label, "slider", (), low, high, step, is_whole=True)


def _select(group: str, key: str, label: str, unset: str = "none") -> Input:
    """Return the select of a parameter that allows a few values."""
    return Input(group, key, label, "select", _choices(key), unset=unset)


def input_values(config: SocialParams) -> dict[str, Any]:
    """Return the first values of the inputs of a configuration, in the form that `Input.kind` takes."""
    leaves_of_config = leaf_values(config)
    values: dict[str, Any] = dict.fromkeys(INTERVENTION, "") | {"intervention.key": NO_KEY}
    for field in make_inputs(config):
        if field.key not in values:
            value = leaves_of_config[field.key]
            empty = "null" if field.kind == "select" else ""
            values[field.key] = empty if value is None else str(value) if field.kind in ("text", "select") else value
    return values


def with_inputs(config: SocialParams, values: Values) -> tuple[SocialParams, dict[str, str]]:
    """Return a configuration with changed inputs, and by key the reason why an input was left out.

    Invalid inputs are left out. If inputs are invalid only together (a ranking that needs groups, without an
    attribute), the last of them are left out.
    """
    at_first = input_values(config)
    changed = {key: value for key, value in values.items() if value != at_first.get(key)}
    intervention = _intervention(values) if changed.get("intervention.key", NO_KEY) != NO_KEY else None
    faults: dict[str, str] = {}
    waiting: dict[str, Any] = {}
    for key in (key for key in changed if key not in INTERVENTION):
        try:
            waiting[key] = _read(key, changed[key])
        except ConfigError as error:
            faults[key] = str(error)
    made = _made(config, waiting, intervention)
    if isinstance(made, SocialParams):
        return made, faults
    kept: dict[str, Any] = {}
    while fits := [key for key in waiting if isinstance(_made(config, {**kept, key: waiting[key]}), SocialParams)]:
        kept[fits[0]] = waiting.pop(fits[0])  # another one may only be right after it
    faults |= {key: str(_made(config, {**kept, key: value})) for key, value in waiting.items()}
    made = _made(config, kept, intervention)
    if isinstance(made, ConfigError):
        faults["intervention.key"] = str(made)
        made = _made(config, kept)
    return (made if isinstance(made, SocialParams) else config), faults


def _made(
    config: SocialParams, values: Values, intervention: Mapping[str, Any] | None = None
) -> SocialParams | ConfigError:
    """Return a configuration with other values and one more intervention, or the reason why it is invalid."""
    changes = nested(values)
    if intervention is not None:
        changes["interventions"] = [*(known.model_dump() for known in config.interventions), intervention]
    try:
        return validated(type(config), merged(config.model_dump(exclude_unset=True), changes), INPUT[:-2])
    except ConfigError as error:
        return error


def _read(key: str, value: Any) -> Any:
    """Convert the value of an input to the type of its parameter."""
    if key == "seed":
        try:
            return int(str(value).strip())
        except ValueError:
            raise ConfigError(f"{INPUT}seed: {str(value)[:60]!r} is no whole number") from None
    if isinstance(value, str):
        return None if value.strip() in ("", "null") and key in _NULLABLE else value.strip()
    return value


_NULLABLE: Final = {key for key, default in leaves(SocialParams) if default is None}


def _intervention(values: Values) -> dict[str, Any]:
    """Return the intervention that the inputs describe, as an entry of the configuration."""
    import yaml

    text = {key: str(values.get(key, "")) for key in INTERVENTION}
    try:
        value = yaml.safe_load(text["intervention.value"])
    except yaml.YAMLError:
        value = text["intervention.value"]
    at, until = (text[f"intervention.{end}"].strip() for end in ("at", "until"))
    return {"at": at, "until": until or None, "set": {values["intervention.key"]: value}}


def changed_keys(now: Values, then: Values) -> Sequence[str]:
    """Return the inputs that have changed since the current model was made."""
    return [key for key, value in now.items() if value != then.get(key)]
