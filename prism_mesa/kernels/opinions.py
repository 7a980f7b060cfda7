"""Stances that change with reading, and their distribution."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel

type Bools = npt.NDArray[np.bool_]
type Floats = npt.NDArray[np.float64]
type Int32s = npt.NDArray[np.int32]
type Int64s = npt.NDArray[np.int64]


@kernel
def are_in_order(agent: Int32s, tick: Int32s) -> bool:
    """Return whether agents ascend, and ticks within each agent."""
    for i in range(1, len(agent)):
        if agent[i] < agent[i - 1] or (agent[i] == agent[i - 1] and tick[i] < tick[i - 1]):
            return False
    return True


@kernel
def move_stances(
    agent: Int32s,
    post: Int32s,
    root: Int32s,
    author: Int32s,
    of_posts: Floats,
    place: int,
    before: Floats,
    repels: bool,
    rate: float,
    limit: float,
    ends: tuple[float, float],
    after: Floats,
    course: Floats,
) -> Any:
    """Move each reader by the posts it read, one by one, and return how many attracted and repelled it.

    Others keep the stance that they had before, so readers do not depend on each other. The author of a root is not
    moved by it.

    Args:
        agent: Readers; the posts of each are adjacent, in the order of reading.
        post: Posts read.
        root: Roots of all posts.
        author: Authors of all posts.
        of_posts: Attributes of all posts, shape (posts, attributes).
        place: Index of the attribute that holds a post's stance; -1 for the stance of the root's author before.
        before: Stances of all agents before.
        repels: False: a post within `limit` attracts its reader by `rate`. True: attraction declines with distance, and
            beyond `limit` becomes repulsion.
        rate: Share of the distance.
        limit: A distance.
        ends: The lowest and highest stance.
        after: Stances after; equal to `before` for agents who read nothing.
        course: Receives the reader's stance after each post by another; may be empty.
    """
    low, high = ends
    drawn_on, pushed_away = 0, 0
    for i in range(len(agent)):
        reader, first = agent[i], root[post[i]]
        writer = author[first]
        if writer == reader:
            continue
        stands = of_posts[first, place] if place >= 0 else before[writer]
        stance = after[reader]
        gap = stands - stance
        distance = abs(gap)
        weight = rate * (1.0 - distance / limit) if repels else (rate if distance <= limit else 0.0)
        if weight != 0.0 and distance != 0.0:
            drawn_on += weight > 0.0
            pushed_away += weight < 0.0
            after[reader] = min(max(stance + weight * gap, low), high)
        if len(course):
            course[i] = after[reader]
    return drawn_on, pushed_away


@kernel
def spread(stances: Floats, counts: Bools, ends: tuple[float, float], bins: Int64s) -> Any:
    """Count stances in equal parts of their range, and return their number, mean, and 2nd, 3rd and 4th central moments.

    `bins` gets the numbers of the parts; a stance between two parts counts for the upper one.
    """
    low, high = ends
    n, total = 0, 0.0
    for i in range(len(stances)):
        if counts[i]:
            n += 1
            total += stances[i]
            part = int((stances[i] - low) / (high - low) * len(bins))
            bins[min(max(part, 0), len(bins) - 1)] += 1
    mean = total / n if n else 0.0
    second, third, fourth = 0.0, 0.0, 0.0
    for i in range(len(stances)):
        if counts[i]:
            gap = stances[i] - mean
            square = gap * gap
            second += square
            third += square * gap
            fourth += square * square
    many = max(n, 1)
    return n, mean, second / many, third / many, fourth / many
