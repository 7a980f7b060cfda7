"""What agents hold after a round, in plain Python: one reader after the other, one post after the other."""


def after_round(before, read, posts, *, rule, rate, distance, low=-1.0, high=1.0, stands=None):
    """Return what agents hold, how many posts drew a reader on and pushed one away, and what moved whom.

    Args:
        before: What they held.
        read: (tick, agent, post) in any order of agents.
        posts: Of each post its root and its author.
        rule: `near` or `both`.
        rate: Share of the distance.
        distance: Share of the range.
        low: The least stance.
        high: The greatest one.
        stands: Where each root stands; None: where its author stood.
    """
    after, drawn_on, pushed_away, influences = list(before), 0, 0, []
    for agent in range(len(before)):
        for _, _, post in sorted((row for row in read if row[1] == agent), key=lambda row: row[0]):
            root = posts[post][0]
            writer = posts[root][1]
            if writer == agent:
                continue
            there = before[writer] if stands is None else stands[root]
            apart = abs(there - after[agent])
            if rule == "near":
                weight = rate if apart <= distance * (high - low) else 0.0
            else:
                weight = rate * (1.0 - apart / (distance * (high - low)))
            drawn_on += weight > 0 and apart > 0
            pushed_away += weight < 0 and apart > 0
            was, after[agent] = after[agent], min(max(after[agent] + weight * (there - after[agent]), low), high)
            if after[agent] != was:
                influences.append((agent, post, was, after[agent]))
    return after, drawn_on, pushed_away, influences
