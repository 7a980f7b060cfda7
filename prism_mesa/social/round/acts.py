"""Carry out acts of the platform as a round opens: which posts they meet, remove or label, and for which readers.

An act on roots (`PostActParams`) meets a root in the first round in which its expression is true, with the counters as
the round opens. It begins after its delay, and then stays until the intervention ends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.domain import ACTIONS, Post
from prism_mesa.errors import ConfigError
from prism_mesa.kernels.utility import NO_MARKS, Marks
from prism_mesa.social.behavior import SCROLLING
from prism_mesa.social.params import InterventionParams, SocialParams
from prism_mesa.social.params.interventions import DelayParams, FilterParams, PostActParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, CandidateColumns
from prism_mesa.social.round.feeds import NO_FEED_ACTS, FeedActs, Int32
from prism_mesa.social.state.assignments import CONTROL, NOT_ELIGIBLE, TREATED
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.social.state.feeds import read_expression, readable_fields
from prism_mesa.social.state.population import AWAY, MEMBER, NO_ACTION, NO_POST, SUSPENDED, Rows
from prism_mesa.social.state.post_acts import NOT_MET, NOT_SUSPENDED
from prism_mesa.social.state.posts import NO_PARENT
from prism_mesa.social.tables import DONE
from prism_mesa.statechart import column_values
from prism_mesa.statechart.checks import suggest_field

type Mask = npt.NDArray[np.bool_]

MAX_MARKS: Final = 32
"""Maximum number of labels and frictions that apply in the same round."""
_READER_FIELDS: Final = ("post.relevance", "post.utility", "post.in_network")
_FEED_ACTS: Final = ("remove", "suspend", "filter", "downrank")


def check_acts(params: SocialParams, declared: Attributes) -> None:
    """Check the fields that acts read.

    Raises:
        ConfigError: If an act reads an unknown field, or a field that does not exist where it is read.
    """
    fields = readable_fields(declared)
    posts = [name for name in fields if name.startswith("post.") and name not in _READER_FIELDS]
    agents = [name for name in fields if name.startswith("agent.")]
    for index, act in enumerate(params.interventions):
        value = getattr(act, act.kind)
        for key, allowed in (("posts", posts), ("accounts", agents), ("by", agents)):
            text = None if key == "posts" and act.suspend is not None else getattr(value, key, None)
            known = [*fields] if isinstance(value, FilterParams) else allowed
            for name in sorted(read_expression(text).fields - {*known}) if text is not None else ():
                where = f"interventions: {index}: {act.kind}.{key}"
                raise ConfigError(f"{where}: {name} cannot be read.{suggest_field(name, known)}")
        reads_reader = isinstance(value, FilterParams) and not _reads_only_posts(value)
        if reads_reader and (params.feed.slots.trending or params.feed.slots.search):
            raise ConfigError(f"interventions: {index}: {act.kind}.posts: cannot read the reader with feed.slots")


def act_key(index: int, act: InterventionParams) -> str:
    """Return the key of an intervention in the platform's state: its name, or else its number."""
    return act.name or str(index)


def active_acts(platform: Platform, *kinds: str) -> Iterator[tuple[int, InterventionParams]]:
    """Yield the interventions of these kinds that apply in this round, with their numbers."""
    for index, act in enumerate(platform.configured.interventions):
        if act.kind in kinds and act.applies_in(platform.round):
            yield index, act


def select_targets(platform: Platform, index: int, act: InterventionParams, rows: Rows) -> Mask:
    """Return which of some agents an intervention applies to."""
    return platform.feeds.select_targets(index, act, rows, AgentColumns(platform, rows), platform.assignments)


def update_suspensions(platform: Platform) -> tuple[Mask, Mask]:
    """Suspend accounts, and end suspensions, as this round opens; return which agents leave and which come back."""
    people = platform.population
    is_leaving, is_returning = np.zeros((2, len(people)), np.bool_)
    for index, act in enumerate(platform.configured.interventions):
        if act.suspend is None:
            continue
        before = platform.post_acts.suspended(act_key(index, act), len(people))
        if act.applies_in(platform.round):
            rows = np.flatnonzero(np.isin(people.membership, (MEMBER, AWAY)))  # newcomers a round after they join
            columns = AgentColumns(platform, rows)
            rows = rows[truth(act.suspend.accounts, columns, columns, len(rows), f"interventions: {index}: accounts")]
            before[rows] = people.membership[rows]
            people.membership[rows] = SUSPENDED
            is_leaving[rows] = people.present[rows]
            note_acts(platform, "suspend", index, act, agents=rows)
        elif act.until == platform.round:
            rows = np.flatnonzero((before != NOT_SUSPENDED) & (people.membership == SUSPENDED))
            people.membership[rows] = before[rows]
            is_returning[rows] = before[rows] == MEMBER
            before[:] = NOT_SUSPENDED
    return is_leaving, is_returning


def truth(text: str, agents: Any, posts: Any, n: int, where: str) -> Mask:
    """Return in which rows an expression is true.

    Raises:
        ConfigError: If it has no truth value.
    """
    values = column_values(read_expression(text), agents, posts, n)
    if values is None:
        raise ConfigError(f"{where}: {text}: is neither true nor false")
    return np.asarray(values != 0)


def carry_out_acts(platform: Platform) -> None:
    """Let acts meet posts, add likes, mark labelled posts, and let agents go of removed posts."""
    acts = [(i, act) for i, act in active_acts(platform, "label", "friction", "remove", "like")]
    roots = _roots_in_reach(platform) if acts else np.zeros(0, np.int64)
    for index, act in acts:
        if act.post_act is not None:
            begun = _meet_posts(platform, index, act, act.post_act, roots)
            if act.friction is None:
                note_acts(platform, act.kind, index, act, posts=begun)
            if act.like is not None:
                platform.posts.count("likes", np.repeat(begun, act.like.n))
    platform.marks = _mark_posts(platform)
    _release_removed(platform)


def _roots_in_reach(platform: Platform) -> Rows:
    """Return the roots of visible posts and the roots that these answer, ascending."""
    posts = platform.posts
    first = posts.first_visible(platform.round, platform.params.feed.window)
    roots = new = np.unique(posts.root[first:])
    while len(new):
        parents = posts.parent[new]
        new = np.setdiff1d(posts.root[parents[parents != NO_PARENT]], roots)
        roots = np.union1d(roots, new)
    return roots


def _meet_posts(platform: Platform, index: int, act: InterventionParams, params: PostActParams, roots: Rows) -> Rows:
    """Let an act meet roots, and return those that it covers and that it begins to apply to in this round."""
    posts, now, key = platform.posts, platform.round, act_key(index, act)
    due = platform.post_acts.due_rounds(key, len(posts))
    new = roots[due[roots] == NOT_MET]
    if params.posts is not None:
        columns = _columns_of_posts(platform, new)
        new = new[truth(params.posts, columns, columns, len(new), f"interventions: {index}: {act.kind}.posts")]
    hours: npt.NDArray[np.float64] | float
    if isinstance(params.delay, DelayParams):
        normals = platform.streams.normal(f"delay {key}", posts.key[new].view(np.int64))
        hours = params.delay.median * np.exp(params.delay.sigma * normals)
        hours = hours.astype(np.float32).astype(np.float64)  # the last digits of exp differ between machines
    else:
        hours = params.delay
    delay = np.ceil(hours / (platform.params.clock.round_minutes / 60))
    due[new] = np.maximum(now, np.minimum(posts.round[new] + delay, np.iinfo(np.int32).max))
    begun = np.flatnonzero(due == now)
    return begun[_covered(platform, index, act, begun)]


def _covered(platform: Platform, index: int, act: InterventionParams, roots: Rows) -> Mask:
    """Return which roots an act covers."""
    coverage = None if act.post_act is None else act.post_act.coverage
    if coverage is None:
        return np.ones(len(roots), np.bool_)
    keys = platform.posts.key[roots].view(np.int64)
    return np.asarray(platform.streams.uniform(f"cover {act_key(index, act)}", keys) < coverage)


def applies_to_roots(platform: Platform, index: int, act: InterventionParams, roots: Rows) -> Mask:
    """Return to which roots an act applies in this round: it has met them, covers them, and its delay is over."""
    due = platform.post_acts.due_rounds(act_key(index, act), len(platform.posts))[roots]
    applies = np.asarray((due != NOT_MET) & (due <= platform.round))
    applies[applies] = _covered(platform, index, act, roots[applies])
    return applies


def covering_acts(platform: Platform) -> list[tuple[int, InterventionParams]]:
    """Return the interventions with a `coverage`, with their numbers; each has two columns in table `posts`."""
    acts = enumerate(platform.configured.interventions)
    return [(i, act) for i, act in acts if act.post_act is not None and act.post_act.coverage is not None]


def post_groups(platform: Platform, index: int, act: InterventionParams, posts: Rows) -> tuple[Int32, Int32]:
    """Return whether an act covers each root that it met (indices into `GROUPS`), and from which round it applies.

    Both are -1 for posts that it did not meet. Posts that it does not cover have the round that they would have had.
    """
    due = platform.post_acts.due_rounds(act_key(index, act), len(platform.posts))[posts]
    groups = np.where(_covered(platform, index, act, posts), TREATED, CONTROL)
    return np.where(due == NOT_MET, NOT_ELIGIBLE, groups).astype(np.int32), due


def _columns_of_posts(platform: Platform, posts: Rows) -> CandidateColumns:
    """Return the columns of posts without a reader."""
    return CandidateColumns(platform, platform.posts.author[posts], posts, np.zeros(len(posts), np.bool_))


def _reads_only_posts(params: FilterParams) -> bool:
    fields = read_expression(params.posts).fields
    return all(name.startswith("post.") and name not in _READER_FIELDS for name in fields)


def hidden_posts(platform: Platform, acts: Sequence[int], posts: Rows) -> Mask:
    """Return which posts are taken out for agents to which these interventions apply.

    A post is out if its root, or a post that the root answers, is removed or is by a suspended account whose posts go.
    """
    is_hidden, table = np.zeros(len(posts), np.bool_), platform.posts
    for index in acts:
        act = platform.configured.interventions[index]
        if act.filter is not None and _reads_only_posts(act.filter):
            columns = _columns_of_posts(platform, posts)
            is_hidden |= truth(act.filter.posts, columns, columns, len(posts), f"interventions: {index}: filter.posts")
        is_suspended = None
        if act.suspend is not None and act.suspend.posts == "remove":
            before = platform.post_acts.suspended(act_key(index, act), len(platform.population))
            is_suspended = before != NOT_SUSPENDED
            is_hidden |= is_suspended[table.author[posts]]
        elif act.remove is None:
            continue
        nodes, places = np.unique(table.root[posts], return_inverse=True)
        is_out, left = np.zeros(len(nodes), np.bool_), np.arange(len(nodes))
        while len(left):  # from each root to the post that it answers
            ids = nodes[left]
            found = (
                applies_to_roots(platform, index, act, ids) if is_suspended is None else is_suspended[table.author[ids]]
            )
            is_out[left[found]] = True
            nodes[left] = table.parent[ids]
            left = left[~found & (nodes[left] != NO_PARENT)]
            nodes[left] = table.root[nodes[left]]
        is_hidden |= is_out[places]
    return is_hidden


def hidden_from(platform: Platform, row: int, posts: Rows) -> Mask:
    """Return which posts are taken out for one agent."""
    acts = active_acts(platform, "remove", "suspend", "filter")
    applying = [index for index, act in acts if select_targets(platform, index, act, np.array([row]))[0]]
    return hidden_posts(platform, applying, posts)


def feed_acts(platform: Platform, acts: Sequence[int]) -> FeedActs:
    """Return what interventions change in the feeds of agents to which they apply."""
    kinds = {platform.configured.interventions[index].kind for index in acts}
    if not kinds & {*_FEED_ACTS}:
        return NO_FEED_ACTS
    first = platform.posts.first_visible(platform.round, platform.params.feed.window)
    visible = np.arange(first, len(platform.posts))
    is_hidden, shift = hidden_posts(platform, acts, visible), np.zeros(len(visible))
    for_pairs: list[tuple[str, float, str]] = []
    for index in acts:
        act = platform.configured.interventions[index]
        where, params = f"interventions: {index}: {act.kind}.posts", act.filter or act.downrank
        if params is None:
            continue
        if not _reads_only_posts(params):
            for_pairs.append((params.posts, -np.inf if act.downrank is None else act.downrank.score, where))
        elif act.downrank is not None:
            columns = _columns_of_posts(platform, visible)
            shift += act.downrank.score * truth(params.posts, columns, columns, len(visible), where)

    def pair_shift(readers: Int32, posts: Int32, is_followed: Mask) -> npt.NDArray[np.float64]:
        total, rows = np.zeros(len(posts)), np.flatnonzero(posts != NO_POST)
        agents = AgentColumns(platform, readers[rows])
        columns = CandidateColumns(platform, readers[rows], posts[rows], is_followed[rows])
        for text, score, where in for_pairs:
            total[rows[truth(text, agents, columns, len(rows), where)]] += score
        return total

    none = NO_FEED_ACTS
    return FeedActs(
        is_hidden if is_hidden.any() else none.is_hidden,
        shift if shift.any() else none.shift,
        pair_shift if for_pairs else None,
    )


def _marking_acts(platform: Platform) -> list[tuple[int, InterventionParams]]:
    """Return the labels and frictions of this round with an effect on actions, in order of their marks."""
    acts = active_acts(platform, "label", "friction")
    return [(index, act) for index, act in acts if act.friction is not None or (act.label and act.label.effect)]


def _mark_posts(platform: Platform) -> Marks:
    """Return the labels and frictions of this round, their posts and agents, and who does not see likes."""
    acts, everybody = _marking_acts(platform), np.arange(len(platform.population))
    hides = [(i, act) for i, act in active_acts(platform, "hide") if "likes" in act.hide]
    sees_no_likes = NO_MARKS.sees_no_likes
    if hides and platform.params.utility.counts:
        sees_no_likes = np.any([select_targets(platform, i, act, everybody) for i, act in hides], axis=0)
    if not acts:
        return NO_MARKS._replace(sees_no_likes=sees_no_likes)
    n_posts, n_agents = len(platform.posts), len(platform.population)
    first = platform.posts.first_visible(platform.round, platform.params.feed.window)
    roots = np.unique(platform.posts.root[first:])
    posts, agents = np.zeros(n_posts, np.uint32), np.zeros(n_agents, np.uint32)
    boosts, kept, keys = np.zeros(len(acts)), np.ones((len(acts), 3)), np.zeros(len(acts), np.uint64)
    for i, (index, act) in enumerate(acts):
        bit, params = np.uint32(1 << i), act.label or act.friction
        posts[roots[applies_to_roots(platform, index, act, roots)]] |= bit
        agents[select_targets(platform, index, act, everybody)] |= bit
        if params is not None:
            boosts[i] = params.boost * (platform.params.utility.mood or 1.0)  # moods are logistic with this scale
            kept[i] = np.array(params.kept_shares, np.float32)  # the last digits of exp differ between machines
        keys[i] = platform.streams.key(f"give up {act_key(index, act)}")
    return Marks(posts, agents, boosts if boosts.any() else boosts[:0], kept, keys, sees_no_likes)


def giving_up_text(platform: Platform) -> str:
    """Return why an agent has just given up an action."""
    *_, action, mark = (int(column[0]) for column in platform.events.given_up[-1])
    index, act = _marking_acts(platform)[mark]
    params = act.label or act.friction
    kept = 1.0 if params is None else params.kept_shares[action]
    return f"'{act_key(index, act)}' multiplies the chance of its {ACTIONS[action]} by {kept:.2g}"


def seen_labels(platform: Platform, readers: Rows, roots: Rows) -> pd.Categorical:
    """Return the first label that each reader sees on a root, by name or number; blank without one."""
    names = [act_key(i, act) for i, act in enumerate(platform.configured.interventions)]
    codes = np.full(len(readers), -1, np.int16)
    for index, act in active_acts(platform, "label"):
        rows = np.flatnonzero(codes < 0)
        codes[rows[_are_labelled(platform, index, act, readers[rows], roots[rows])]] = index
    return pd.Categorical.from_codes(codes, names)


def _are_labelled(platform: Platform, index: int, act: InterventionParams, readers: Rows, roots: Rows) -> Mask:
    """Return which readers see a label on a root."""
    return applies_to_roots(platform, index, act, roots) & select_targets(platform, index, act, readers)


def show_acts(platform: Platform, readers: Rows, posts: Sequence[Post | None]) -> list[Post | None]:
    """Return posts for prompts as the readers see them: with the texts of labels, and without hidden numbers."""
    shown, rows = list(posts), np.array([i for i, post in enumerate(posts) if post is not None and post.root >= 0], int)
    roots = np.array([post.root for post in posts if post is not None and post.root >= 0], np.int64)
    for index, act in active_acts(platform, "label", "hide") if len(rows) else ():
        if act.label is not None:
            is_changed = _are_labelled(platform, index, act, readers[rows], roots) & bool(act.label.text)
        else:
            is_changed = select_targets(platform, index, act, readers[rows])
        for i in rows[is_changed].tolist():
            if (post := shown[i]) is not None and act.label is not None:
                shown[i] = replace(post, about="; ".join(filter(None, (post.about, f"label: {act.label.text}"))))
            elif post is not None:
                shown[i] = replace(post, velocity=0, **dict.fromkeys(act.hide, 0))
    return shown


def note_given_up(platform: Platform) -> None:
    """Count and record the actions that agents gave up in this round, by agent and tick."""
    if not platform.events.given_up:
        return
    tick, agent, post, action, mark = (np.concatenate(column) for column in zip(*platform.events.given_up, strict=True))
    order = np.lexsort((tick, agent))
    for i, (index, act) in enumerate(_marking_acts(platform)):
        rows = order[mark[order] == i]
        note_acts(platform, "abandon", index, act, posts=post[rows], agents=agent[rows], actions=action[rows])


def _release_removed(platform: Platform) -> None:
    """Let agents that hold a removed post go of it and scroll on."""
    acts = [index for index, _ in active_acts(platform, "remove", "suspend")]
    people = platform.population
    rows = np.flatnonzero(people.current_post != NO_POST) if acts else np.zeros(0, np.int64)
    for index, act in active_acts(platform, "remove", "suspend") if len(rows) else ():
        is_out = hidden_posts(platform, [index], people.current_post[rows])
        out = rows[is_out & select_targets(platform, index, act, rows)]
        people.current_post[out], people.pending_action[out] = NO_POST, NO_ACTION
        people.state[out], people.ticks_in_state[out] = SCROLLING.code, 0


def note_acts(
    platform: Platform,
    what: str,
    index: int,
    act: InterventionParams,
    *,
    posts: Rows | None = None,
    agents: Rows | None = None,
    actions: Rows | int = -1,
) -> None:
    """Count what an act has done to posts or agents in this round, and record it in table `acts`."""
    rows = posts if posts is not None else agents
    if rows is None or not len(rows):
        return
    platform.totals[f"acts {what} {act_key(index, act)}"] += len(rows)
    if platform.recorder is None or not platform.records("acts"):
        return
    nobody = np.full(len(rows), NO_POST, np.int32)
    names = [act_key(i, other) for i, other in enumerate(platform.configured.interventions)]
    platform.recorder.write(
        "acts",
        {
            "round": np.full(len(rows), platform.round, np.int32),
            "act": pd.Categorical.from_codes(np.full(len(rows), DONE.index(what)), list(DONE)),
            "name": pd.Categorical.from_codes(np.full(len(rows), index), names),
            "post": nobody if posts is None else posts.astype(np.int32),
            "agent": nobody if agents is None else agents.astype(np.int32),
            "action": pd.Categorical.from_codes(np.broadcast_to(actions, len(rows)), list(ACTIONS)),
        },
    )
