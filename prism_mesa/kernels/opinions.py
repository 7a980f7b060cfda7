"""Update stances after reading, and measure their distribution."""

from typing import Any

from prism_mesa.arrays import Floats, Int32, Ints, Mask
from prism_mesa.kernels.compiling import kernel


@kernel
def are_in_order(agent: Int32, tick: Int32) -> bool:
    """Return whether agents ascend, and whether ticks ascend within each agent."""
    for i in range(1, len(agent)):
        if agent[i] < agent[i - 1] or (agent[i] == agent[i - 1] and tick[i] < tick[i - 1]):
            return False
    return True


@kernel
def move_stances(
    agent: Int32,
    post: Int32,
    root: Int32,
    author: Int32,
    post_attributes: Floats,
    index: int,
    before: Floats,
    repels: bool,
    rate: float,
    limit: float,
    bounds: tuple[float, float],
    after: Floats,
    path: Floats,
) -> Any:
    """Move the stance of each reader, post by post; return how many posts attracted and how many repelled a reader.

    Posts have the stances from before this update, so readers do not depend on each other. A root does not move its
    author.

    Args:
        agent: Readers; the posts of each are adjacent, in reading order.
        post: The posts that they read.
        root: Roots of all posts.
        author: Authors of all posts.
        post_attributes: Attributes of all posts, shape (posts, attributes).
        index: Index of the attribute with a post's stance; -1 for the stance of its root's author.
        before: Stances of all agents before this update.
        repels: False: a post within `limit` attracts its reader by `rate`. True: attraction declines with distance, and
            becomes repulsion beyond `limit`.
        rate: Share of the distance by which a stance moves.
        limit: Distance between stances.
        bounds: The lowest and highest possible stance.
        after: The new stances. On entry it equals `before`.
        path: Receives the reader's stance after each post by another agent; may be empty.
    """
    low, high = bounds
    n_attracted, n_repelled = 0, 0
    for i in range(len(agent)):
        reader, shown_root = agent[i], root[post[i]]
        writer = author[shown_root]
        if writer == reader:
            continue
        post_stance = post_attributes[shown_root, index] if index >= 0 else before[writer]
        stance = after[reader]
        gap = post_stance - stance
        distance = abs(gap)
        weight = rate * (1.0 - distance / limit) if repels else (rate if distance <= limit else 0.0)
        if weight != 0.0 and distance != 0.0:
            n_attracted += weight > 0.0
            n_repelled += weight < 0.0
            after[reader] = min(max(stance + weight * gap, low), high)
        if len(path):
            path[i] = after[reader]
    return n_attracted, n_repelled


@kernel
def spread_moments(stances: Floats, is_counted: Mask, bounds: tuple[float, float], bins: Ints) -> Any:
    """Return the number and mean of counted stances, and their second, third and fourth central moments.

    `bins` receives a histogram of stances, with bins of equal width; a stance between two bins goes to the upper one.
    """
    low, high = bounds
    n, total = 0, 0.0
    for i in range(len(stances)):
        if is_counted[i]:
            n += 1
            total += stances[i]
            part = int((stances[i] - low) / (high - low) * len(bins))
            bins[min(max(part, 0), len(bins) - 1)] += 1
    mean = total / n if n else 0.0
    second, third, fourth = 0.0, 0.0, 0.0
    for i in range(len(stances)):
        if is_counted[i]:
            gap = stances[i] - mean
            square = gap * gap
            second += square
            third += square * gap
            fourth += square * square
    divisor = max(n, 1)
    return n, mean, second / divisor, third / divisor, fourth / divisor
