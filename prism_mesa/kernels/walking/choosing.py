"""Open choices as the rule answers them (`reasoner.rule.RuleReasoner`), one at a time, within a walk.

The same numbers are added in the same order as there, so that both fall on the same option.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import part_of_kernels
from prism_mesa.kernels.draws import mixed, unit

type Int32 = npt.NDArray[np.int32]
type UInt32 = npt.NDArray[np.uint32]
type Floats = npt.NDArray[np.float64]

PASSIVE: Final = -2
COMPOSES: Final = -1
"""What an option does that is not the state of an action."""


class Options(NamedTuple):
    """What open choices are between: the option sets of a chart.

    Attributes:
        start: Options of set s are ``start[s]`` .. ``start[s + 1] - 1``.
        target: The state that each leads to.
        does: Its action, `COMPOSES`, or `PASSIVE`.
        left: Shape (sets, 3): 1 for actions that are no options themselves: composing stands for these.
        trigger: Of each trigger of the chart: the index of the draws of choices that it leads to, uint64.
    """

    start: UInt32
    target: UInt32
    does: Int32
    left: Floats
    trigger: npt.NDArray[np.uint64]


class Rule(NamedTuple):
    """The numbers of the rule.

    Attributes:
        answers: Whether it is the rule that answers; if not, agents stop at open choices.
        key: Of the draws of choices, with the round mixed in.
        bias: Log-odds of engaging to begin with; `slope` by the position of a post on the band, `velocity` by the
            logarithm of its velocity, `media` if it has any.
        traits: Log-odds by standardised trait, shape (5,); `means` and `sds` of the traits.
        logistic: P(engage) by log-odds from the lowest to the highest, in equal `steps` to one.
        log1p: Logarithm of 1 + 0, 1, 2, ...; the last stands for more.
        most: How far a position lies from the middle of the band at most.
    """

    answers: bool
    key: np.uint64
    bias: float
    slope: float
    velocity: float
    media: float
    traits: Floats
    means: Floats
    sds: Floats
    logistic: Floats
    log1p: Floats
    steps: int
    most: float


@part_of_kernels
def engage_probability(
    utility: float,
    low: float,
    high: float,
    velocity: Any,
    media: Any,
    traits: npt.NDArray[np.float32],
    row: Any,
    rule: Rule,
) -> float:
    """Return P(engage) of the agent of a row with a post."""
    width, held = high - low, 0.0
    if width > 0.0:
        held = min(max(2.0 * (utility - low) / width - 1.0, -rule.most), rule.most)
    logged = rule.log1p[min(max(velocity, 0), len(rule.log1p) - 1)]
    z = rule.bias + rule.slope * held + rule.velocity * logged + rule.media * media
    for k in range(len(rule.traits)):
        z = z + rule.traits[k] * (np.float64(traits[row, k]) - rule.means[k]) / rule.sds[k]
    middle = len(rule.logistic) // 2
    steps = np.int64(np.rint(min(max(z * rule.steps, -np.float64(middle)), np.float64(middle))))
    return np.float64(rule.logistic[steps + middle])


@part_of_kernels
def _weight(
    does: Any, left: Floats, choices: Any, is_any: Any, propensities: npt.NDArray[np.float32], row: Any
) -> float:
    """Return what an option has of P(engage), before all of them are made to add up to 1."""
    if does == PASSIVE:
        return 0.0
    if does != COMPOSES:
        return np.float64(propensities[row, does])
    total = 0.0 if is_any else 1.0
    for action in range(left.shape[1]):
        if is_any and left[choices, action] > 0.0:
            total += np.float64(propensities[row, action])
    return total


@part_of_kernels
def chosen(
    choices: Any, engage: float, draw: float, propensities: npt.NDArray[np.float32], row: Any, options: Options
) -> Any:
    """Return the state that the agent of a row goes to, of those of an option set, by its draw."""
    first, last = np.int64(options.start[choices]), np.int64(options.start[choices + 1])
    n_active, total, is_any = 0, 0.0, False
    for i in range(first, last):
        n_active += options.does[i] != PASSIVE
        is_any |= options.does[i] >= 0
    for i in range(first, last):
        total += _weight(options.does[i], options.left, choices, is_any, propensities, row)
    n_passive = last - first - n_active
    if n_active == 0 or n_passive == 0:
        engage = 1.0 if n_passive == 0 else 0.0
    before, picked = 0.0, np.int64(first)
    for i in range(first, last):
        if options.does[i] == PASSIVE:
            share = (1.0 - engage) / float(n_passive)
        elif total > 0.0:
            share = engage * (_weight(options.does[i], options.left, choices, is_any, propensities, row) / total)
        else:
            share = engage * (1.0 / n_active)
        if before <= draw and share > 0.0:
            picked = np.int64(i)
        before += share
    return np.int64(options.target[picked])


@part_of_kernels
def draw_of_choice(key: np.uint64, tick: Any, trigger: np.uint64, row: Any) -> float:
    """Return the draw of an agent's choice (`social.round.choices.choice_draws`)."""
    return unit(mixed(mixed(mixed(key, np.uint64(tick)), trigger), np.uint64(row)))
