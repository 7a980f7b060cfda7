"""What the stand-in for Ollama proposes to a nation: plain sentences about an instrument that the prompt names."""

from typing import Any, Final

from prism_mesa.economy.policy_text import parse_policy

_CALLED: Final = ("action", "policy")
"""What a policy in words is called in the forms of answers and calls."""

_OF: Final = {
    "the policy rate": (
        "Raise the policy rate by 0.25 percentage points",
        "Lower the policy rate by 0.25 percentage points",
    ),
    "government spending": (
        "Increase government spending by 0.5% of GDP",
        "Cut government spending by 0.5% of GDP",
        "Raise taxes by 0.5% of GDP",
        "Cut taxes by 0.5% of GDP",
    ),
    "tariffs on a named nation": ("Impose a 5% tariff on all imports", "Remove all tariffs"),
}
"""Policies by the words with which a prompt names their instrument."""

_HOLD: Final = "Keep everything as it is"


def with_policies(value: Any, number: int, prompt: str) -> Any:
    """Return an answer whose policies, if the prompt names instruments, are policies that move one or hold all.

    >>> with_policies({"action": "yes"}, 7, "Instruments: the policy rate (percentage points).")
    {'action': 'Lower the policy rate by 0.25 percentage points'}
    """
    policies = [one for named, of in _OF.items() if named in prompt for one in of]
    if "Instruments: " not in prompt or not policies:
        return value
    return _filled(value, [_HOLD, *policies][number // 3 % (len(policies) + 1)])


def _filled(value: Any, policy: str) -> Any:
    if isinstance(value, list):
        return [_filled(part, policy) for part in value]
    if not isinstance(value, dict):
        return value
    measures = [measure.model_dump() for measure in parse_policy(policy, "", ()).measures]  # without nations no tariffs
    return {
        name: policy if name in _CALLED and isinstance(part, str) else _filled(part, policy)
        for name, part in value.items()
    } | ({"measures": measures} if "measures" in value else {})
