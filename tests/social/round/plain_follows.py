"""A network that moves in plain Python, one pair at a time, from the texts of `follow_rules` and `follows`.

No kernel helps it, but for the keyed draws and the utility of a post; it is slow, and meant to be read.
"""

import numpy as np

OPPOSITE = {"follow": "unfollow", "mute": "unmute", "block": "unblock"}
OPPOSITE |= {back: event for event, back in OPPOSITE.items()}
STRENGTH = ("block", "mute", "unfollow", "follow")
TOLD_FIRST = ("engaged", "exposure", "follow_back", "triad", "ignored")


class PlainFollows:
    """Who follows, mutes and blocks whom, and what the rules say: sets of pairs, and lists of rows of `follows`."""

    def __init__(self, model):
        network = model.network
        self.follows = {(a, b) for a in range(network.n_agents) for b in network.followees(a).tolist()}
        self.muted, self.blocked, self.reported, self.new = set(), set(), set(), set()
        self.noted = {}
        self.rates, self.streams = model.params.network.rates, model.streams

    def sees_nothing(self, agent, other):
        return (agent, other) in self.muted | self.blocked or (other, agent) in self.blocked

    # scripts

    def note(self, agent, other, event, why, post=-1, root=-1):
        """Note what a script says, and return whether that is new; None: it is refused."""
        if event == "report":
            is_new = (agent, root) not in self.reported and (agent, root, event) not in self.noted
            if is_new:
                self.noted[agent, root, event] = (other, post, why)
            return is_new
        apart = (agent, other, "block") in self.noted or {(agent, other), (other, agent)} & self.blocked
        if event in ("follow", "unfollow") and apart:
            return None if event == "follow" else False
        if self.noted.pop((agent, other, OPPOSITE[event]), None):
            return True
        known = {"follow": self.follows, "mute": self.muted, "block": self.blocked}
        done = (agent, other) in known[event] if event in known else (agent, other) not in known[OPPOSITE[event]]
        if done or (agent, other, event) in self.noted:
            return False
        self.noted[agent, other, event] = (other, post, why)
        return True

    # rules

    def ruled(self, model, read, engaged, network):
        """Return what the rules say of a round: (agent, other, event, post, why).

        Args:
            model: After the round.
            read: Pairs of an agent and a post.
            engaged: Pairs of an agent and a post.
            network: That of the round.
        """
        self.model, self.round = model, model.round
        roots = model.posts.root.tolist()
        self.engaged = {(agent, roots[post]) for agent, post in engaged}
        found = [row for agent, post in read for row in self._met(agent, post, roots[post], network)]
        for follower, agent in self.new:
            chance = self.rates.follow_back * self._liking(agent, follower)
            if self._draw("follow back", agent, follower) < chance and self._may(agent, follower):
                found.append((agent, follower, "follow", -1, "follow_back"))
        for agent in {agent for agent, _ in read}:
            found += self._triad(agent, network)
        return found

    def _draw(self, purpose, agent, index=0):
        return float(self.streams.uniform(purpose, agent, round_=self.round, index=index)[0])

    def _there(self, *agents):
        return len(set(agents)) == 2 and all(self.model.population.present[agent] for agent in agents)

    def _may(self, agent, other):
        return self._there(agent, other) and (agent, other) not in self.follows and not self.sees_nothing(agent, other)

    def _met(self, agent, post, root, network):
        posts, rates = self.model.posts, self.rates
        key, author, by = posts.key[root], int(posts.author[root]), int(posts.author[post])
        has_engaged = (agent, root) in self.engaged
        chance = min(1, rates.follow * rates.engaged) if has_engaged else rates.follow
        if self._draw("follow", agent, key) < chance * self._liking(agent, author) and self._may(agent, author):
            yield agent, author, "follow", post, "engaged" if has_engaged else "exposure"
        if (
            has_engaged
            or not self._there(agent, by)
            or self.sees_nothing(agent, by)
            or not self._ignores(agent, post, network)
        ):
            return
        protects = rates.reciprocal if (by, agent) in self.follows else 1
        chances = {"mute": rates.mute, "block": rates.block, "report": rates.report}
        if (agent, by) in self.follows:
            chances["unfollow"] = rates.unfollow * protects
        for event, chance in chances.items():
            if self._draw(event, agent, key) < chance:
                yield agent, by, event, post, "ignored"

    def _liking(self, agent, other):
        own = self.model.params.agents.homophily
        if own.by is None:
            return 1
        one, two = (getattr(self.model.agent(row), own.by) for row in (agent, other))
        apart = abs(one - two) / 2 if own.by == "leaning" else one != two
        return float(np.float32(np.exp(-own.following * apart)))

    def _ignores(self, agent, post, network):
        now, platform = self.model.network, self.model.platform
        platform.network = network
        utility = self.model.post(post, agent).utility
        platform.network = now
        return utility < self.model.agent(agent).low_threshold

    def _triad(self, agent, network):
        other = agent
        if self._draw("triad", agent) < self.rates.triad:
            for step in range(2):
                followees = network.followees(other).tolist()
                if not followees:
                    return
                other = followees[int(self._draw("triad step", agent, step) * len(followees))]
            liked = self._draw("triad", agent) < self.rates.triad * self._liking(agent, other)
            if liked and self._may(agent, other):
                yield agent, other, "follow", -1, "triad"

    # what counts

    def commit(self, present, ruled=(), roots=(), round_=0):
        """Let what counts hold, and return the rows of `follows`, in their order."""
        noted = [
            (agent, other, event, post, why)
            for (agent, _, event), (other, post, why) in self.noted.items()
            if present[agent] and present[other]
        ]
        told = {row[:2] for row in noted if row[2] != "report"}
        rows, reported = list(noted), {(a, roots[p]) for a, _, event, p, _ in noted if event == "report"}
        for row in sorted(ruled, key=_strongest_first):
            if row[2] == "report":
                pair = (row[0], roots[row[3]])
                if pair not in reported | self.reported:
                    reported.add(pair)
                    rows.append(row)
            elif row[:2] not in told:
                told.add(row[:2])
                rows.append(row)
        apart = {pair for a, b, event, _, _ in rows if event == "block" for pair in ((a, b), (b, a))}
        rows = [row for row in rows if not (row[2] in ("follow", "unfollow") and row[:2] in apart)]
        rows += [(*pair, "unfollow", -1, "block") for pair in apart & self.follows]
        self._hold(rows, reported)
        order = ("follow", "unfollow", "mute", "block", "report", "unmute", "unblock")
        return [(round_, *row) for row in sorted(rows, key=lambda r: (*r[:2], order.index(r[2]), r[3]))]

    def _hold(self, rows, reported):
        of = {event: {row[:2] for row in rows if row[2] == event} for event in OPPOSITE}
        self.follows = (self.follows | of["follow"]) - of["unfollow"]
        self.muted = (self.muted - of["unmute"]) | of["mute"]
        self.blocked = (self.blocked - of["unblock"]) | of["block"]
        self.reported |= reported
        self.noted = {}
        self.began = of["follow"]


def _strongest_first(row):
    """Return by what the rules' rows are gone through; reports are of posts, and go beside the rest."""
    _, _, event, post, why = row
    return (-1, 0, post) if event == "report" else (STRENGTH.index(event), TOLD_FIRST.index(why), post)
