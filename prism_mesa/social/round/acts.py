"""Carry out acts of the platform as a round opens: whom they treat, and which posts they meet, remove or label.

An act on roots (`PostActParams`) meets a root in the first round in which its expression is true, with the counters as
the round opens. It begins after its delay, and then stays until the intervention ends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import exp
from typing import Final

import numpy as np
import pandas as pd

from prism_mesa.arrays import Floats, Int32, Mask, Rows, UInt8
from prism_mesa.domain import ACTIONS, Post
from prism_mesa.errors import ConfigError
from prism_mesa.kernels.commit.orders import new_post_keys
from prism_mesa.kernels.utility import NO_MARKS, Marks
from prism_mesa.social.behavior import SCROLLING
from prism_mesa.social.params import InterventionParams, SocialParams
from prism_mesa.social.params.attributes import COMMUNITY
from prism_mesa.social.params.interventions import DelayParams, FilterParams, PostActParams, draft_expression
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, CandidateColumns, PostColumns
from prism_mesa.social.round.feeds import NO_FEED_ACTS, FeedActs
from prism_mesa.social.state.act_state import CONTROL, NOT_ASSIGNED, NOT_ELIGIBLE, NOT_MET, NOT_SUSPENDED, TREATED
from prism_mesa.social.state.attributes import Attributes
from prism_mesa.social.state.events import REPLY as REPLY_ACTION
from prism_mesa.social.state.feeds import FEED_ACTS, is_true, read_expression, readable_fields, select_targets
from prism_mesa.social.state.population import AWAY, GONE, MEMBER, NO_ACTION, NO_POST, SUSPENDED
from prism_mesa.social.state.posts import NO_PARENT, POST_COUNTERS, REPLY
from prism_mesa.social.tables import DONE
from prism_mesa.statechart.checks import suggest_field

MAX_ACTS: Final = 32
"""Maximum number of labels and frictions in a round, and of acts on feeds."""
_READER_FIELDS: Final = ("post.relevance", "post.utility", "post.expected_utility", "post.in_network")


def check_acts(params: SocialParams, declared: Attributes) -> None:
    """Check the fields that acts read.

    Raises:
        ConfigError: If an act reads an unknown field, or a field that does not exist where it is read.
    """
    for kinds in (("label", "friction"), FEED_ACTS):
        acts = [act for act in params.interventions if act.kind in kinds]
        n = max((sum(other.applies_in(act.at) for other in acts) for act in acts), default=0)
        if n > MAX_ACTS:
            raise ConfigError(f"interventions: {n} acts of {', '.join(kinds)} in one round (at most {MAX_ACTS})")
    fields = readable_fields(declared)
    posts = [name for name in fields if name.startswith("post.") and name not in _READER_FIELDS]
    agents = [name for name in fields if name.startswith("agent.")]
    for index, act in enumerate(params.interventions):
        value, drafts = getattr(act, act.kind), [f"post.{name}" for name in declared.posts]
        allowed = {"posts": fields if isinstance(value, FilterParams) else posts, "draft": drafts}
        for key, text in _expressions(act):
            known = allowed.get(key.partition(".")[2], agents)
            for name in sorted(read_expression(text).fields - {*known}):
                fault = f"{name} cannot be read.{suggest_field(name, known)}"
                fault = fault.replace("post.", "draft.") if key == "friction.draft" else fault
                raise ConfigError(f"interventions: {index}: {key}: {fault}")
        for name, attribute_value in (act.post.attributes if act.post is not None else {}).items():
            try:
                declared.posts[name].number(attribute_value)
            except ValueError as error:
                raise ConfigError(f"interventions: {index}: post.attributes: {name}: {error}") from None
        reads_reader = isinstance(value, FilterParams) and not _reads_only_posts(value)
        if reads_reader and (params.feed.slots.trending or params.feed.slots.search):
            raise ConfigError(f"interventions: {index}: {act.kind}.posts: cannot read the reader with feed.slots")


def try_acts(platform: Platform) -> None:
    """Evaluate the expressions of all acts without any rows; raise ConfigError for one without a truth value."""
    nobody = np.zeros(0, np.int32)
    agents, posts = AgentColumns(platform, nobody), _columns_of_posts(platform, nobody)
    for index, act in enumerate(platform.configured.interventions):
        for key, text in _expressions(act):
            try:
                is_true(text, 0, posts, agents)
            except ConfigError as error:
                raise ConfigError(f"interventions: {index}: {key}: {error}") from None


def _expressions(act: InterventionParams) -> Iterator[tuple[str, str]]:
    """Yield the keys and texts of an act's expressions; fields of drafts are those of posts."""
    if act.agents is not None:
        yield "agents", act.agents
    for key in ("accounts",) if act.suspend is not None else ("posts", "draft", "by"):
        text = getattr(getattr(act, act.kind), key, None)
        if text is not None:
            yield f"{act.kind}.{key}", draft_expression(text) if key == "draft" else text


def act_key(index: int, act: InterventionParams) -> str:
    """Return the key of an intervention in the platform's state: its name, or else its number."""
    return act.name or str(index)


def draw_key(act: InterventionParams) -> str:
    """Return the key of an intervention's draws: its name, or else its act, wherever it stands in the list."""
    return act.name or repr(getattr(act, act.kind))


def active_acts(platform: Platform, *kinds: str) -> Iterator[tuple[int, InterventionParams]]:
    """Yield the interventions of these kinds that apply in this round, with their numbers."""
    for index, act in enumerate(platform.configured.interventions):
        if act.kind in kinds and act.applies_in(platform.round):
            yield index, act


def targets(platform: Platform, act: InterventionParams, rows: Rows) -> Mask:
    """Return which of some agents an intervention applies to."""
    return select_targets(act, rows, AgentColumns(platform, rows), platform.act_state)


def assign_agents(platform: Platform) -> None:
    """Assign agents to the named interventions that apply in this round, and note the groups of a new intervention.

    With a `share`, an agent is assigned once: when the intervention begins, or when the agent joins. Otherwise the
    agents that the intervention targets in any round are treated.
    """
    population, has_joined = platform.population, platform.population.has_joined
    for act in platform.configured.interventions:
        if act.name is None or not act.applies_in(platform.round):
            continue
        groups = platform.act_state.groups(act.name, len(population))
        rows = np.flatnonzero(has_joined & (groups == NOT_ASSIGNED) if act.share is not None else has_joined)
        if not len(rows):
            continue
        is_eligible = np.ones(len(rows), np.bool_)
        if act.agents is not None:
            is_eligible = is_true(act.agents, len(rows), AgentColumns(platform, rows))
        if act.share is None:
            groups[rows[is_eligible]] = TREATED
            continue
        # the draws depend only on seed, name, and agent or cluster: a larger share treats the same agents, and others
        draws = platform.streams.uniform(f"assign {act.name}", _clusters(platform, act, rows))
        drawn = np.where(draws < act.share, TREATED, CONTROL)
        groups[rows] = np.where(is_eligible, drawn, NOT_ELIGIBLE)
        if act.at == platform.round:
            n_treated, n_eligible = np.count_nonzero(groups == TREATED), int(is_eligible.sum())
            platform.notes += (
                f"interventions: {act.name}: treats {n_treated:,} of {n_eligible:,} eligible agents "
                f"(share={act.share:g})",
            )


def _clusters(platform: Platform, act: InterventionParams, rows: Rows) -> Rows:
    """Return the cluster of each agent; agents of one cluster have the same draw."""
    if act.assign is None:
        return rows
    if act.assign.by == COMMUNITY:
        return np.asarray(np.searchsorted(platform.attributes.bounds, rows, side="right"))
    place, _ = platform.attributes.schema.agent_attribute(act.assign.by)
    return np.ascontiguousarray(platform.population.attributes[rows, place]).view(np.int64)


def update_suspensions(platform: Platform) -> tuple[Mask, Mask]:
    """Suspend accounts, and end suspensions, as this round opens; return which agents leave and which come back."""
    people, usual = platform.population, _usual_membership(platform)
    was_suspended, is_suspended = people.membership == SUSPENDED, np.zeros(len(people), np.bool_)
    for index, act in enumerate(platform.configured.interventions):
        if act.suspend is None:
            continue
        before = platform.act_state.suspended(act_key(index, act), len(people))
        if act.applies_in(platform.round):
            is_account = np.isin(usual, (MEMBER, AWAY))  # newcomers are suspended a round after they join
            rows = np.flatnonzero(is_account & (before == NOT_SUSPENDED))
            rows = rows[is_true(act.suspend.accounts, len(rows), AgentColumns(platform, rows))]
            before[rows] = usual[rows]
            note_acts(platform, "suspend", index, act, agents=rows)
        elif act.until == platform.round:
            before[:] = NOT_SUSPENDED
        is_suspended |= before != NOT_SUSPENDED
    people.membership[:] = np.where(is_suspended & (usual != GONE), SUSPENDED, usual)
    return is_suspended & people.present, was_suspended & ~is_suspended & (usual == MEMBER)


def _usual_membership(platform: Platform) -> UInt8:
    """Return the membership of all agents as if no account were suspended."""
    usual = platform.population.membership.copy()
    for before in platform.act_state.membership.values():
        known = before[: len(usual)]
        is_held = (known != NOT_SUSPENDED) & (usual[: len(known)] == SUSPENDED)
        usual[: len(known)][is_held] = known[is_held]
    return usual


def meet_posts(platform: Platform, first: int = 0) -> None:
    """Let acts meet roots from post `first` on, and add likes.

    In its first round, an act meets all roots. Later it looks at new roots, and if its expression may become true also
    at others in reach of feeds.
    """
    in_reach: Rows | None = None
    for index, act in active_acts(platform, "label", "friction", "remove", "like"):
        if act.post_act is not None and not act.meets_all:
            if act.at == platform.round:
                roots = _roots_from(platform, 0)
            elif _is_fixed(act.post_act):
                roots = _roots_from(platform, platform.posts.first_visible(platform.round, 1))
            else:
                roots = in_reach = _roots_in_reach(platform) if in_reach is None else in_reach
            begun = _meet_posts(platform, index, act, act.post_act, roots[roots >= first])
            begun = begun[begun >= first]
            if act.friction is None:
                note_acts(platform, act.kind, index, act, posts=begun)
            if act.like is not None:
                platform.posts.likes[begun] += act.like.n


def carry_out_acts(platform: Platform) -> None:
    """Let acts meet the posts of this round, mark labelled posts, and let agents go of removed posts."""
    first = 0 if platform.writer is None else platform.first_of_round
    meet_posts(platform, first)
    platform.marks = _mark_posts(platform)
    _release_removed(platform)


def _is_fixed(params: PostActParams) -> bool:
    """Return whether an act meets a root at its birth or never."""
    changing = {f"post.{name}" for name in (*POST_COUNTERS, "age", "age_hours", "author_followers")}
    fields = read_expression(params.posts).fields if params.posts is not None else frozenset[str]()
    return not any(name in changing or name.startswith("post.author_") for name in fields)


def _roots_from(platform: Platform, first: int) -> Rows:
    root = platform.posts.root[first:]
    return first + np.flatnonzero(root == np.arange(first, len(platform.posts), dtype=np.int32))


def _roots_in_reach(platform: Platform) -> Rows:
    """Return the roots of visible posts and the roots that these answer, ascending."""
    posts = platform.posts
    new = posts.root[posts.first_visible(platform.round, platform.params.feed.window) :]
    is_in_reach = np.zeros(len(posts), np.bool_)
    while len(new):
        new = new[~is_in_reach[new]]
        is_in_reach[new] = True
        parents = posts.parent[new]
        new = posts.root[parents[parents != NO_PARENT]]
    return np.flatnonzero(is_in_reach)


def _meet_posts(platform: Platform, index: int, act: InterventionParams, params: PostActParams, roots: Rows) -> Rows:
    """Let an act meet roots, and return those that it covers and that it begins to apply to in this round."""
    posts, now, key = platform.posts, platform.round, act_key(index, act)
    due = platform.act_state.due_rounds(key, len(posts))
    new = roots[due[roots] == NOT_MET]
    if params.posts is not None:
        new = new[is_true(params.posts, len(new), _columns_of_posts(platform, new))]
    hours: Floats | float
    if isinstance(params.delay, DelayParams):
        normals = platform.streams.normal(f"delay {draw_key(act)}", posts.key[new].view(np.int64))
        hours = params.delay.median * np.exp(params.delay.sigma * normals)
        hours = hours.astype(np.float32).astype(np.float64)  # the last digits of exp differ between machines
    else:
        hours = params.delay
    delay = np.ceil(hours / (platform.params.clock.round_minutes / 60))
    due[new] = np.maximum(now, np.minimum(posts.round[new] + delay, np.iinfo(np.int32).max))
    begun = np.flatnonzero(due == now) if params.delay else new
    return begun[_covered(platform, act, begun)]


def _covered(platform: Platform, act: InterventionParams, roots: Rows) -> Mask:
    coverage = None if act.post_act is None else act.post_act.coverage
    if coverage is None:
        return np.ones(len(roots), np.bool_)
    keys = platform.posts.key[roots].view(np.int64)
    return np.asarray(platform.streams.uniform(f"cover {act.name}", keys) < coverage)


def applies_to_roots(platform: Platform, index: int, act: InterventionParams, roots: Rows | slice) -> Mask:
    """Return to which roots an act applies in this round: it has met them, covers them, and its delay is over."""
    due = platform.act_state.due_rounds(act_key(index, act), len(platform.posts))[roots]
    if act.meets_all:
        return np.ones(len(due), np.bool_)
    applies = np.asarray((due != NOT_MET) & (due <= platform.round))
    if act.post_act is not None and act.post_act.coverage is not None:
        applies[applies] = _covered(platform, act, np.arange(len(platform.posts))[roots][applies])
    return applies


def covering_acts(platform: Platform) -> list[tuple[int, InterventionParams]]:
    """Return the interventions with a `coverage`, with their numbers; each has two columns in table `posts`."""
    acts = enumerate(platform.configured.interventions)
    return [(i, act) for i, act in acts if act.post_act is not None and act.post_act.coverage is not None]


def post_groups(platform: Platform, index: int, act: InterventionParams, posts: Rows) -> tuple[Int32, Int32]:
    """Return whether an act covers each root that it met (indices into `GROUPS`), and from which round it applies.

    Both are -1 for posts that it did not meet. Posts that it does not cover have the round that they would have had.
    """
    due = platform.act_state.due_rounds(act_key(index, act), len(platform.posts))[posts]
    groups = np.where(_covered(platform, act, posts), TREATED, CONTROL)
    return np.where(due == NOT_MET, NOT_ELIGIBLE, groups).astype(np.int32), due


def _columns_of_posts(platform: Platform, posts: Rows) -> CandidateColumns:
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
            is_hidden |= is_true(act.filter.posts, len(posts), _columns_of_posts(platform, posts))
        is_suspended = np.zeros(0, np.bool_)
        if act.suspend is not None and act.suspend.posts == "remove":
            before = platform.act_state.suspended(act_key(index, act), len(platform.population))
            is_suspended = before != NOT_SUSPENDED
            is_hidden |= is_suspended[table.author[posts]]
        elif act.remove is None:
            continue
        left, nodes = np.arange(len(posts)), table.root[posts]
        while len(left):  # from each root to the post that it answers
            is_out = is_suspended[table.author[nodes]] if act.suspend else applies_to_roots(platform, index, act, nodes)
            is_hidden[left[is_out]] = True
            left, nodes = left[~is_out], table.parent[nodes[~is_out]]
            left, nodes = left[nodes != NO_PARENT], table.root[nodes[nodes != NO_PARENT]]
    return is_hidden


def hidden_from(platform: Platform, row: int, posts: Rows) -> Mask:
    """Return which posts are taken out for one agent."""
    acts = active_acts(platform, "remove", "suspend", "filter")
    applying = [index for index, act in acts if targets(platform, act, np.array([row]))[0]]
    is_hidden = hidden_posts(platform, applying, posts)
    if (pair_shift := feed_acts(platform, np.array([row])).pair_shift) is not None:
        is_followed = np.isin(platform.posts.author[posts], platform.network.followees(row))
        is_hidden |= pair_shift(np.full(len(posts), row, np.int32), posts.astype(np.int32), is_followed) == -np.inf
    return is_hidden


def feed_acts(platform: Platform, readers: Rows) -> FeedActs:
    """Return what acts of the platform change in the feeds of some agents."""
    acts = [*active_acts(platform, *FEED_ACTS)]
    if not acts:
        return NO_FEED_ACTS
    visible = np.arange(platform.posts.first_visible(platform.round, platform.params.feed.window), len(platform.posts))
    columns = _columns_of_posts(platform, visible)
    post_bits, reader_bits = np.zeros(len(visible), np.uint32), np.zeros(len(platform.population), np.uint32)
    scores, hiding, for_pairs = np.zeros(len(acts)), np.uint32(0), list[tuple[np.uint32, str, float]]()
    for i, (index, act) in enumerate(acts):
        bit, params = np.uint32(1 << i), act.filter or act.downrank
        score = -np.inf if act.downrank is None else act.downrank.score
        if params is not None and not _reads_only_posts(params):
            for_pairs.append((bit, params.posts, score))
        else:
            if params is None:
                post_bits |= bit * hidden_posts(platform, [index], visible)
            else:
                post_bits |= bit * is_true(params.posts, len(visible), columns)
            scores[i], hiding = score, hiding | bit * np.uint32(act.downrank is None)
        reader_bits[readers[targets(platform, act, readers)]] |= bit
    pair_bits = np.uint32(sum(int(bit) for bit, *_ in for_pairs))
    reader_bits &= np.bitwise_or.reduce(post_bits, initial=pair_bits)  # other acts change nothing

    def pair_shift(readers: Int32, posts: Int32, is_followed: Mask) -> Floats:
        total, rows = np.zeros(len(posts)), np.flatnonzero(posts != NO_POST)
        agents, bits = AgentColumns(platform, readers[rows]), reader_bits[readers[rows]]
        columns = CandidateColumns(platform, readers[rows], posts[rows], is_followed[rows])
        for bit, text, score in for_pairs:
            total[rows[is_true(text, len(rows), columns, agents) & (bits & bit != 0)]] += score
        return total

    common = np.bitwise_and.reduce(reader_bits[readers], initial=np.uint32(0xFFFFFFFF))
    return FeedActs(post_bits, reader_bits, scores, hiding, common, pair_bits, pair_shift if for_pairs else None)


def _marking_acts(platform: Platform) -> list[tuple[int, InterventionParams]]:
    is_llm = platform.reasoner.batch_reasoner is None or platform.reasoner.llm_share > 0
    acts = active_acts(platform, "label", "friction")
    return [
        (i, act) for i, act in acts if act.label is None or act.label.effect or (act.label.effect is None and is_llm)
    ]


def _mark_posts(platform: Platform) -> Marks:
    """Return the labels and frictions of this round, their roots and agents, and who does not see likes."""
    acts, everybody = _marking_acts(platform), np.arange(len(platform.population))
    sees_no_likes, utility = NO_MARKS.sees_no_likes, platform.params.utility
    hides = [act for _, act in active_acts(platform, "hide") if "likes" in act.hide]
    if hides and utility.counts:
        sees_no_likes = np.any([targets(platform, act, everybody) for act in hides], axis=0)
    if not acts:
        return NO_MARKS._replace(sees_no_likes=sees_no_likes)
    posts, agents = np.zeros(len(platform.posts), np.uint32), np.zeros(len(everybody), np.uint32)
    visible = platform.posts.root[platform.posts.first_visible(platform.round, platform.params.feed.window) :]
    first = int(visible.min(initial=len(posts)))
    effects, keys, asks, drafts = np.zeros((len(acts), len(ACTIONS))), np.zeros(len(acts), np.uint64), 0, 0
    for i, (index, act) in enumerate(acts):
        bit = np.uint32(1 << i)
        posts[first:] |= bit * (act.meets_all or applies_to_roots(platform, index, act, slice(first, None)))
        agents |= bit * targets(platform, act, everybody)
        effects[i], keys[i] = act.log_factors, platform.streams.key(f"give up {draw_key(act)}")
        asks |= (act.label is not None and act.label.effect is None) << i
        drafts |= (act.friction is not None and act.friction.draft is not None) << i
    scale = (utility.mood or 1.0) if effects.max() > 0 else 0.0  # moods are logistic with this scale
    return Marks(posts, agents, effects, keys, scale, np.uint32(asks), np.uint32(drafts), sees_no_likes)


def giving_up_text(platform: Platform) -> str:
    """Return why an agent has just given up an action."""
    *_, action, mark = (int(column[0]) for column in platform.events.given_up[-1])
    index, act = _marking_acts(platform)[mark]
    if act.friction is not None and act.friction.draft is not None:
        return f"'{act_key(index, act)}' stops {act.friction.abandon:.2g} of such replies"
    raised = 0.0 if platform.tables.engages else max(0.0, *act.log_factors)
    factor = exp(act.log_factors[action] - raised)
    return f"'{act_key(index, act)}' multiplies the chance of its {ACTIONS[action]} by {factor:.2g}"


def must_ask(platform: Platform, row: int, post: int) -> bool:
    """Return whether a label lets the oracle decide if an agent composes about a post."""
    marks = platform.marks
    return bool(marks.asks) and bool(marks.posts[platform.posts.root[post]] & marks.agents[row] & marks.asks)


def seen_labels(platform: Platform, readers: Rows, roots: Rows) -> pd.Categorical:
    """Return the first label that each reader sees on a root, by name or number; blank without one."""
    names = [act_key(i, act) for i, act in enumerate(platform.configured.interventions)]
    codes = np.full(len(readers), -1, np.int16)
    for index, act in active_acts(platform, "label"):
        rows = np.flatnonzero(codes < 0)
        codes[rows[_are_labelled(platform, index, act, readers[rows], roots[rows])]] = index
    return pd.Categorical.from_codes(codes, names)


def _are_labelled(platform: Platform, index: int, act: InterventionParams, readers: Rows, roots: Rows) -> Mask:
    return applies_to_roots(platform, index, act, roots) & targets(platform, act, readers)


def show_acts(platform: Platform, readers: Rows, posts: Sequence[Post | None]) -> list[Post | None]:
    """Return posts for prompts as the readers see them: with the texts of labels, and without hidden numbers."""
    shown, rows = list(posts), np.array([i for i, post in enumerate(posts) if post is not None and post.root >= 0], int)
    roots = np.array([post.root for post in posts if post is not None and post.root >= 0], np.int64)
    for index, act in active_acts(platform, "label", "hide") if len(rows) else ():
        if act.label is not None:
            is_changed = _are_labelled(platform, index, act, readers[rows], roots) & bool(act.label.text)
        else:
            is_changed = targets(platform, act, readers[rows])
        for i in rows[is_changed].tolist():
            if (post := shown[i]) is not None and act.label is not None:
                shown[i] = replace(post, about="; ".join(filter(None, (f"label: {act.label.text}", post.about))))
            elif post is not None:
                shown[i] = replace(post, velocity=0, **dict.fromkeys(act.hide, 0))
    return shown


def review_drafts(platform: Platform, ticks: Rows, rows: Rows, posts: Rows) -> Mask:
    """Return which agents give up their replies because of frictions on drafts; note these, and milder replies."""
    table, marks = platform.posts, platform.marks
    tick, agent, post = (part.astype(np.int32) for part in (ticks, rows, posts))
    n, kind, now = len(table), np.full(len(rows), REPLY), platform.round
    keys = new_post_keys(platform.streams.key("reshare", now), tick, agent, post, kind, table.key)
    ids = table.add(rows, table.text_id[posts], now + 1, REPLY, posts, None, keys, written=now)
    drafts, roots = PostColumns(platform, rows, ids), table.root[posts]
    is_out, milder_marks = np.zeros(len(rows), np.bool_), np.full(len(rows), -1)
    for i, (_, act) in enumerate(_marking_acts(platform)):
        if act.friction is None or act.friction.draft is None:
            continue
        draft = draft_expression(act.friction.draft)
        is_met = marks.posts[roots] & marks.agents[rows] & np.uint32(1 << i) != 0
        is_met &= is_true(draft, len(rows), drafts) & ~is_out
        draws = platform.streams.uniform(f"draft {draw_key(act)}", rows, index=table.key[roots].view(np.int64))
        gives_up = is_met & (draws < act.friction.abandon)
        is_milder = is_met & ~gives_up & (draws < act.friction.abandon + act.friction.milder)
        columns = tick, agent, post, np.full(len(rows), REPLY_ACTION, np.int32), np.full(len(rows), i, np.int32)
        if gives_up.any():
            platform.events.given_up.append(tuple(column[gives_up] for column in columns))
        milder_marks[is_milder] = i
        for end in ("lowest", "highest"):  # the mildest value is the lowest one that is not interrupted
            if is_milder.any():
                _set_values(platform, ids[is_milder], draft, end)
                is_milder &= is_true(draft, len(rows), drafts)
        is_out |= gives_up
    for i in np.flatnonzero((milder_marks >= 0) & ~is_out).tolist():
        values = table.attributes[ids[i]].tolist()
        platform.events.softened[int(rows[i]), int(posts[i])] = int(milder_marks[i]), values
    table.n = n  # the drafts are not published yet
    return is_out


def _set_values(platform: Platform, posts: Rows, draft: str, end: str) -> None:
    """Set the attributes of some posts that an expression reads to their lowest or highest values."""
    for field in read_expression(draft).fields:
        place, attribute = platform.attributes.schema.post_attribute(field.removeprefix("post."))
        stored = attribute.stored_values if attribute.values else np.array([attribute.low, attribute.high])
        platform.posts.attributes[posts, place] = stored.min() if end == "lowest" else stored.max()


def note_given_up(platform: Platform) -> None:
    """Count and record the actions that agents gave up or wrote milder in this round, by agent and tick."""
    softened = platform.events.softened
    for i, (index, act) in enumerate(_marking_acts(platform)) if softened else ():
        pairs = np.array(sorted(pair for pair, (mark, _) in softened.items() if mark == i), np.int64).reshape(-1, 2)
        note_acts(platform, "soften", index, act, posts=pairs[:, 1], agents=pairs[:, 0], actions=REPLY_ACTION)
    if not platform.events.given_up:
        return
    tick, agent, post, action, mark = (np.concatenate(column) for column in zip(*platform.events.given_up, strict=True))
    order = np.lexsort((tick, agent))
    for i, (index, act) in enumerate(_marking_acts(platform)):
        rows = order[mark[order] == i]
        note_acts(platform, "abandon", index, act, posts=post[rows], agents=agent[rows], actions=action[rows])


def _release_removed(platform: Platform) -> None:
    people = platform.population
    for index, act in active_acts(platform, "remove", "suspend"):
        rows = np.flatnonzero(people.current_post != NO_POST)
        is_out = hidden_posts(platform, [index], people.current_post[rows])
        out = rows[is_out & targets(platform, act, rows)]
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
            "act": pd.Categorical.from_codes(np.full(len(rows), [*DONE].index(what)), [*DONE]),
            "name": pd.Categorical.from_codes(np.full(len(rows), index), names),
            "post": nobody if posts is None else posts.astype(np.int32),
            "agent": nobody if agents is None else agents.astype(np.int32),
            "action": pd.Categorical.from_codes(np.broadcast_to(actions, len(rows)), list(ACTIONS)),
        },
    )
