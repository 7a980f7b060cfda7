"""The utility of a post for a reader, in units of relevance; walks, columns and single agents use the same rule."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Int32, Ints, Mask, UInt32, UInt64
from prism_mesa.kernels.compiling import Table, inline_kernel, kernel, kernel_step, lean_kernel
from prism_mesa.kernels.draws import mix, uniform
from prism_mesa.kernels.lanes import unlikely
from prism_mesa.kernels.matching import compute_match, match_to_relevance
from prism_mesa.kernels.ordering import count_equal, is_among
from prism_mesa.kernels.walking.arrays import RESHARE, PostTable

MOOD_BITS: Final = 16
"""Number of bits of a draw that give a mood. Log-odds come from a table, so they are the same on all machines."""
MOOD_SHIFT: Final = np.uint64(64 - MOOD_BITS)

SOFT_STEPS: Final = 256
"""Entries per unit of log-odds in the table of `softplus`."""


class Tastes(NamedTuple):
    """The parameters of utility; many are log-odds.

    Attributes:
        weight: Weight of relevance.
        sensitivity: Utility of one unit of log-odds; if it is 0, utility is relevance.
        gamma: Share of the appeal that remains after a reshare, and for readers who do not follow the author.
        reshared: Log-odds that a reshare adds.
        closeness: Log-odds of engaging because the author is a close tie; -inf for no effect.
        homophily: Log-odds that a post loses if the dissimilarity of reader and root's author is 1.
        attribute: The column of the attribute that dissimilarity compares.
        scale: Dissimilarity per unit of difference; dissimilarity is at most 1.
        per_source: Log-odds that a post gains for each time that the reader has read its root (`read_roots`).
        appeal_by: The column of the attribute of roots that changes their appeal; -1 for none.
        per_unit: Log-odds per unit of this attribute.
        fades: Whether these log-odds are part of the appeal, so that `gamma` reduces them.
        mood_key: Key of the draws of moods.
        now: The current round.
    """

    weight: float
    sensitivity: float
    gamma: float
    reshared: float
    closeness: float
    homophily: float
    attribute: int
    scale: float
    per_source: float
    appeal_by: int
    per_unit: float
    fades: bool
    mood_key: np.uint64
    now: int


class Marks(NamedTuple):
    """The labels and frictions of a round, up to 32; each has a bit. Agents may also not see the likes of posts.

    Attributes:
        posts, agents: The bits that apply to each root, and to each agent; empty without labels and frictions.
        effect: Logs of the factors on the chance of each action, shape (marks, actions).
        key: Keys of the draws of giving up.
        scale: Log-odds of engaging per 1 of effects above 0; 0 if there are none.
        asks: Bits of labels for which an agent that would compose asks the oracle instead.
        drafts: Bits of frictions that depend on the draft of a reply, so no kernel can decide.
        sees_no_likes: Which agents do not see the likes of posts; empty if all do, or if likes have no effect.
    """

    posts: UInt32 = np.zeros(0, np.uint32)
    agents: UInt32 = np.zeros(0, np.uint32)
    effect: Table[np.float64] = np.zeros((0, 3))
    key: UInt64 = np.zeros(0, np.uint64)
    scale: float = 0.0
    asks: np.uint32 = np.uint32(0)
    drafts: np.uint32 = np.uint32(0)
    sees_no_likes: Mask = np.zeros(0, np.bool_)


NO_MARKS: Final = Marks()


class TasteTables(NamedTuple):
    """Arrays of utility.

    Attributes:
        age_loss: Log-odds that a root has lost after 0, 1, 2, ... rounds; the last value applies to more rounds.
        likes_gain: Log-odds that a root gains with 0, 1, 2, ... likes; the last value applies to more; empty for none.
        value_gain: Log-odds that a root gains with some values of the attribute `Tastes.appeal_by`, shape (2, values).
        mood: Log-odds for each value of the leading bits of a draw, shape (2**MOOD_BITS,).
        softplus_table: ``log(1 + exp(-k / SOFT_STEPS))`` for k = 0, 1, 2, ...; the last value applies to larger k.
        indptr, indices: The followees of each agent, ascending.
        close_indptr, close_indices: The close ties among these followees.
        attributes: Attributes of agents, shape (agents, attributes).
        read_start, read_roots: With `feed.repeats`, the roots that each agent has read, ascending, with repetitions.
        likes: Likes of each post.
        marks: Labels and frictions.
    """

    age_loss: Floats
    likes_gain: Floats
    value_gain: Table[np.float64]
    mood: Floats
    softplus_table: Floats
    indptr: Ints
    indices: Int32
    close_indptr: Ints
    close_indices: Int32
    attributes: Table[np.float64]
    read_start: Ints
    read_roots: Int32
    likes: Int32
    marks: Marks


@inline_kernel
def _sum_effects(bits: Any, action: Any, marks: Marks) -> float:
    total = 0.0
    for mark in range(len(marks.key)):
        if bits >> np.uint32(mark) & np.uint32(1):
            total += marks.effect[mark, action]
    return total


@inline_kernel
def _largest_effect(bits: Any, marks: Marks) -> float:
    """Return the largest sum of effects on an action, at least 0."""
    largest = 0.0
    for action in range(marks.effect.shape[1] if marks.scale > 0.0 else 0):
        largest = max(largest, _sum_effects(bits, action, marks))
    return largest


@kernel_step
def added_odds(row: Any, root: Any, marks: Marks) -> float:
    """Return the log-odds of engaging with a root that its labels add for an agent."""
    return marks.scale * _largest_effect(marks.posts[root] & marks.agents[row], marks)


@inline_kernel
def giving_up(row: Any, root: Any, action: Any, raised: Any, marks: Marks, post_key: UInt64) -> Any:
    """Return the label or friction for which an agent most gives up an action on a root, or -1 if it does not.

    `raised` is 1 if effects above 0 add to the utility by which the agent decides, else 0. The draw depends on the
    first intervention, the agent and the root, so the agent always gives up the same actions.
    """
    bits, cause, least, key = marks.posts[root] & marks.agents[row], np.int64(-1), 0.0, np.uint64(0)
    log_kept = _sum_effects(bits, action, marks) - raised * _largest_effect(bits, marks)
    if log_kept >= 0.0:
        return cause
    for mark in range(len(marks.key)):
        if bits >> np.uint32(mark) & np.uint32(1):
            effect = marks.effect[mark, action] - raised * _largest_effect(np.uint32(1) << np.uint32(mark), marks)
            key = marks.key[mark] if cause < 0 else key
            if cause < 0 or effect < least:
                cause, least = np.int64(mark), effect
    draw = uniform(mix(mix(key, post_key[root]), np.uint64(row)))
    kept = np.float32(np.exp(log_kept))  # the last digits of exp differ between machines
    return cause if draw >= kept else np.int64(-1)


@kernel_step
def shown_likes_odds(row: Any, root: Any, tables: TasteTables) -> float:
    """Return the log-odds of engaging with a root that its likes add for an agent, who may not see them."""
    if len(tables.marks.sees_no_likes) > 0 and tables.marks.sees_no_likes[row]:
        return 0.0
    return np.float64(tables.likes_gain[min(tables.likes[root], len(tables.likes_gain) - 1)])


@kernel_step
def attribute_odds(root: Any, tastes: Tastes, tables: TasteTables, posts: PostTable) -> float:
    """Return the log-odds of engaging with a root that its attribute adds."""
    value = posts.attributes[root, tastes.appeal_by]
    total = tastes.per_unit * value
    for i in range(tables.value_gain.shape[1]):
        if tables.value_gain[0, i] == value:
            total += tables.value_gain[1, i]
    return np.float64(total)


@kernel
def first_giving_up(row: int, root: int, action: int, raised: bool, marks: Marks, post_key: UInt64) -> Any:
    """Return `giving_up` for a single agent."""
    return giving_up(np.int64(row), np.int64(root), np.int64(action), np.float64(raised), marks, post_key)


@inline_kernel
def dissimilarity(row: Any, other: Any, tastes: Tastes, attributes: Floats) -> Any:
    """Return the dissimilarity of two agents, 0 to 1."""
    difference = attributes[row, tastes.attribute] - attributes[other, tastes.attribute]
    return min(1.0, abs(difference) * tastes.scale)


@inline_kernel
def softplus(x: Any, softplus_table: Floats) -> Any:
    """Return ``log(1 + exp(x))``, with ``log(1 + exp(-abs(x)))`` from a table that rounds `x`."""
    return max(x, 0.0) + softplus_table[np.int64(min(abs(x) * SOFT_STEPS + 0.5, len(softplus_table) - 1.0))]


@inline_kernel
def _log_odds(
    row: Any,
    root: Any,
    author: Any,
    root_author: Any,
    is_reshare: Any,
    is_followed: Any,
    appeal: Any,
    root_loss: float,
    mood_key: np.uint64,
    tastes: Tastes,
    tables: TasteTables,
) -> float:
    """Return a post's log-odds for a reader, without relevance.

    `author` wrote the post; `root_author`, `appeal` and `root_loss` belong to its root. A close tie is another reason
    to engage. Tie and appeal combine as a soft maximum of log-odds.
    """
    share, extra = 1.0, 0.0
    if is_reshare:
        share, extra = tastes.gamma, tastes.reshared
    elif tastes.gamma != 1.0 and not (
        is_followed or is_among(tables.indices, tables.indptr[row], tables.indptr[row + 1], author)
    ):
        share = tastes.gamma
    if tastes.closeness > -np.inf:
        for i in range(tables.close_indptr[row], tables.close_indptr[row + 1]):
            if tables.close_indices[i] == author:
                extra += softplus(tastes.closeness - share * appeal, tables.softplus_table)
    if tastes.homophily != 0.0:
        extra -= tastes.homophily * dissimilarity(row, root_author, tastes, tables.attributes)
    if tastes.per_source != 0.0 and len(tables.read_start) > 1:
        begin, end = tables.read_start[row], tables.read_start[row + 1]
        extra += tastes.per_source * count_equal(tables.read_roots, begin, end, root)
    if unlikely(tables.marks.scale > 0.0):
        extra += added_odds(row, root, tables.marks)
    if unlikely(len(tables.likes_gain) > 0):
        extra += shown_likes_odds(row, root, tables)
    mood = tables.mood[np.int64(mix(mood_key, np.uint64(row)) >> MOOD_SHIFT)]
    return np.float64(share * appeal - root_loss + extra + mood)


@inline_kernel
def _root_loss(root: Any, tastes: Tastes, tables: TasteTables, posts: PostTable) -> Any:
    """Return the log-odds that a root has lost with age, minus those that its attribute adds beside its appeal."""
    loss = tables.age_loss[np.int64(min(max(tastes.now - posts.round[root], 0), len(tables.age_loss) - 1))]
    if unlikely(tastes.appeal_by >= 0) and not tastes.fades:
        loss -= attribute_odds(root, tastes, tables, posts)
    return loss


@inline_kernel
def root_appeal(root: Any, tastes: Tastes, tables: TasteTables, posts: PostTable) -> Any:
    """Return the appeal of a root, with the log-odds of its attribute if they fade as the appeal does."""
    appeal = posts.appeal[root]
    if unlikely(tastes.appeal_by >= 0) and tastes.fades:
        appeal = np.float32(appeal + attribute_odds(root, tastes, tables, posts))
    return appeal


@inline_kernel
def post_mood_key(post: Any, root: Any, tastes: Tastes, tables: TasteTables, posts: PostTable) -> Any:
    """Return the key of a post's moods; copies of a root share it unless roots can be shown again."""
    mood_key = mix(tastes.mood_key, posts.key[root])
    if len(tables.read_start) > 1 and post != root:
        mood_key = mix(mood_key, np.uint64(posts.author[post]))
    return mood_key


@inline_kernel
def post_utility(row: Any, post: Any, relevance: float, tastes: Tastes, tables: TasteTables, posts: PostTable) -> float:
    """Return the utility of a post for the agent in a row, given the post's relevance."""
    utility = tastes.weight * relevance
    if tastes.sensitivity != 0.0:
        root, is_reshare = np.int64(posts.root[post]), posts.kind[post] == RESHARE
        root_loss, mood_key = _root_loss(root, tastes, tables, posts), post_mood_key(post, root, tastes, tables, posts)
        author, root_author = posts.author[post], posts.author[root]
        appeal = root_appeal(root, tastes, tables, posts)
        odds = _log_odds(row, root, author, root_author, is_reshare, False, appeal, root_loss, mood_key, tastes, tables)
        utility += tastes.sensitivity * odds
    return utility


PREVIEW: Final = np.dtype(
    [
        ("mood_key", np.uint64),
        ("root_loss", np.float64),
        ("appeal", np.float32),
        ("root", np.int32),
        ("author", np.int32),
        ("text", np.int32),
    ]
)
"""Data of a post that decide whether a reader passes it, in half a line of memory, since walks often read them.

The fields are: key of moods, log-odds lost (`_root_loss`), appeal, root, author, and text.
"""


@lean_kernel
def fill_previews(first: int, posts: PostTable, tastes: Tastes, tables: TasteTables, out: npt.NDArray[Any]) -> None:
    """Write the previews of posts from id `first` on into `out`, an array of type `PREVIEW`."""
    for place in range(len(out)):
        post = first + place
        root = np.int64(posts.root[post])
        out[place].mood_key = post_mood_key(post, root, tastes, tables, posts)
        out[place].root_loss = _root_loss(root, tastes, tables, posts)
        out[place].appeal = root_appeal(root, tastes, tables, posts)
        out[place].root = root
        out[place].author = posts.author[post]
        out[place].text = posts.text_id[post]


@inline_kernel
def preview_taste(
    row: Any, post: Any, preview: Any, is_followed: Any, tastes: Tastes, tables: TasteTables, posts: PostTable
) -> float:
    """Return `post_utility` without relevance, from a preview; `is_followed`: the reader surely follows its author."""
    if tastes.sensitivity == 0.0:
        return 0.0
    root, author, appeal, loss, key = preview.root, preview.author, preview.appeal, preview.root_loss, preview.mood_key
    root_author = posts.author[root] if tastes.homophily != 0.0 else author
    is_reshare = root != post  # all other posts are their own roots
    odds = _log_odds(row, root, author, root_author, is_reshare, is_followed, appeal, loss, key, tastes, tables)
    return np.float64(tastes.sensitivity * odds)


@kernel
def utilities(
    readers: Ints,
    post_ids: Ints,
    matches: Ints,
    unit_length: float,
    posts: PostTable,
    tastes: Tastes,
    tables: TasteTables,
    out: Floats,
) -> None:
    """Write the utility of each post for its reader; arrays have the same length."""
    for i in range(len(out)):
        relevance = match_to_relevance(matches[i], unit_length)
        out[i] = post_utility(readers[i], post_ids[i], relevance, tastes, tables, posts)


WORTH_UNITS: Final = float(1 << 20)
"""Units per 1 of utility in the sums of `add_utilities`."""


@kernel
def add_utilities(
    readers: Int32,
    post_ids: Int32,
    interests: Table[np.int8],
    unit_length: float,
    posts: PostTable,
    tastes: Tastes,
    tables: TasteTables,
    total: Ints,
) -> None:
    """Add the utility of each post, as a whole number of units, to the `total` of its reader, in any order."""
    for i in range(len(readers)):
        row, post = np.int64(readers[i]), np.int64(post_ids[i])
        match = compute_match(interests, posts.vectors, row, posts.text_id[post])
        relevance = match_to_relevance(match, unit_length)
        total[row] += np.int64(np.rint(post_utility(row, post, relevance, tastes, tables, posts) * WORTH_UNITS))
