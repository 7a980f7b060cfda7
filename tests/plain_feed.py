"""A feed in plain Python, one reader at a time, from the texts of `rank_feeds`, `FeedParams` and `XAlgoParams`.

No kernel helps it, but for the keyed draws; it is slow, and meant to be read.
"""

import math
from types import SimpleNamespace

import numpy as np

from prism_mesa.kernels.draws import mix, uniform
from prism_mesa.social.state.posts import REPLY, similarities, to_relevance


def plain_feed(
    reader, population, posts, seen, network, params, streams, now, hidden=frozenset(), groups=None, copies=()
):
    """Return the feed of one reader, best first.

    Args:
        posts: As `listed`.
        seen: The roots that it has read; `hidden`: authors that it mutes; `copies`: posts that it has read, where
            roots can be shown again.
        groups: The group of each agent, and how often each has read, and engaged with, each root.
    """
    follows = set(network.followees(reader).tolist())
    visible = [i for i in range(posts.n) if now - params.window < posts.round[i] <= now]
    inside = [i for i in visible if int(posts.author[i]) in follows - hidden]
    inside = set(
        inside[max(0, len(inside) - params.candidates.followed) :] if params.candidates.followed is not None else inside
    )
    shown = inside | _drawn(reader, visible, population, posts, network, follows, params, streams, now)
    shown = {i for i in shown if int(posts.author[i]) not in hidden}

    def is_new(post):
        root = _root(posts, post)
        return root not in seen and post not in copies and int(posts.author[root]) != reader

    fresh = [i for i in sorted(shown) if is_new(i)]
    if params.mode == "bridging":
        scores = _consensus(fresh, visible, posts, groups)
    else:
        scores = _scores(reader, fresh, inside, population, posts, params, streams, now)
    scored = dict(zip(fresh, scores, strict=True))
    best, roots = [], set()
    for i in _best_first(scored):
        if _root(posts, i) not in roots:
            roots.add(_root(posts, i))
            best.append(i)
    if params.weights:
        best = _best_first(_less_of_one_author(best, scored, posts, params.weights))
    if params.mode == "diverse":
        lowered = _divided(best, scored, [int(posts.author[i]) for i in best])
        best = _best_first(lowered)
        if groups is not None:
            of = [int(groups.agent_groups[posts.author[_root(posts, i)]]) for i in best]
            best = _best_first(_divided(best, lowered, of))
    beside = _trending(visible, posts)[: params.slots.trending] if params.slots.trending else []
    if params.slots.search:
        beside += _found(reader, visible, population, posts, streams, now)[: params.slots.search]
    beside = [i for i in beside if is_new(i) and int(posts.author[i]) not in hidden]
    return _with_slots(best[: params.size], beside, posts, params)


def listed(posts):
    """Return posts with the columns that are read as lists: one cell of an array takes long to read."""
    columns = ("author", "root", "round", "kind", "velocity", "likes", "replies", "reshares", "impressions", "key")
    lists = {name: getattr(posts, name).tolist() for name in columns}
    return SimpleNamespace(n=len(posts), topics=posts.topics, vectors=posts.vectors, **lists)


def _with_slots(best, beside, posts, params):
    """Return a feed with other posts at every so many-th place, and behind its last one."""
    if not beside:
        return best[: params.size]
    feed, in_feed, best, beside = [], set(), list(best), list(beside)
    while len(feed) < params.size and (best or beside):
        beside = [i for i in beside if i not in in_feed]
        is_slot = (len(feed) + 1) % params.slots.every == 0
        if beside and (is_slot or not best):
            feed.append(beside.pop(0))
            best = [i for i in best if _root(posts, i) != feed[-1]]
        elif best:
            feed.append(best.pop(0))
        in_feed |= {_root(posts, i) for i in feed[-1:]}
    return feed


def _divided(best, scored, of):
    """Return scores, divided by 1, 2, 3, ... for the first, second, third, ... post of the same kind."""
    met, divided = {}, {}
    for post, kind in zip(best, of, strict=True):
        met[kind] = met.get(kind, 0) + 1
        divided[post] = scored[post] * (1 / met[kind])
    return divided


def _consensus(candidates, visible, posts, groups):
    """Return the product of the shares that groups engage with, each drawn towards the mean by 20 impressions."""
    n = groups.counts.n
    roots = sorted({_root(posts, i) for i in visible})

    def of(counts, root, group):
        return int(counts[root, group]) if root < len(counts) else 0

    read, engaged = groups.counts.impressions, groups.counts.engagements
    cells = [(root, group) for root in roots for group in range(n)]
    total = sum(of(read, *cell) for cell in cells)
    mean = sum(of(engaged, *cell) for cell in cells) / total if total else 0
    shares = [
        [(of(engaged, _root(posts, i), g) + 20 * mean) / (of(read, _root(posts, i), g) + 20) for g in range(n)]
        for i in candidates
    ]
    return [math.prod(of_groups) for of_groups in shares]


def _root(posts, post):
    return posts.root[post]


def _best_first(scored):
    """Return posts by their scores as float32; ties go to the newer one."""
    with np.errstate(over="ignore"):
        return sorted(scored, key=lambda post: (float(np.float32(scored[post])), post), reverse=True)


def _trending(visible, posts):
    roots = [i for i in visible if _root(posts, i) == i and posts.velocity[i] > 0]
    return sorted(roots, key=lambda i: (int(posts.velocity[i]), i), reverse=True)


def _found(reader, visible, population, posts, streams, now):
    """Return the roots that are nearest to one of the three topics nearest to the reader, if it has any."""
    topics = posts.topics
    near = topics.name_vectors.astype(int) @ population.interests[reader].astype(int)
    nearest = [t for t in sorted(range(len(near)), key=lambda t: -near[t])[:3] if near[t] > 0]
    if not nearest:
        return []
    topic = topics.name_vectors[nearest[int(streams.uniform("search", reader, round_=now)[0] * len(nearest))]].astype(
        int
    )
    roots = [i for i in visible if _root(posts, i) == i]
    scored = dict(zip(roots, (posts.vectors(np.array(roots, int)).astype(int) @ topic).tolist(), strict=True))
    return sorted((i for i in scored if scored[i] > 0), key=lambda i: (scored[i], i), reverse=True)


def _drawn(reader, visible, population, posts, network, follows, params, streams, now):
    """Return the posts from outside its network that are drawn for a reader."""
    also, found = params.candidates, set()
    n = also.out_of_network + (params.weights.out_of_network if params.weights else 0)
    if not visible:
        return set()
    if n:
        places = streams.integers("out of network", reader, len(visible), round_=now, index=np.arange(n)).tolist()
        found |= {visible[k] for k in places}
    for draw in range(also.two_hops):
        found |= _of_two_hops(draw, reader, visible, posts, network, streams, now)
    if also.trending:
        found |= set(_trending(visible, posts)[: also.trending])
    if also.search:
        found |= set(_found(reader, visible, population, posts, streams, now)[: also.search])
    return {i for i in found if int(posts.author[i]) not in follows | {reader}}


def _of_two_hops(draw, reader, visible, posts, network, streams, now):
    """Return a post of somebody whom somebody follows whom the reader follows, each drawn evenly; or none."""
    at = reader
    for hop in range(2):
        known = network.followees(at).tolist()
        if not known:
            return set()
        at = known[_place(draw, reader, hop, len(known), streams, now)]
    wrote = [i for i in visible if int(posts.author[i]) == at]
    return {wrote[_place(draw, reader, 2, len(wrote), streams, now)]} if wrote else set()


def _place(draw, reader, step, n, streams, now):
    key = np.uint64(mix(np.uint64(mix(streams.key("two hops", now, 0), np.uint64(draw))), np.uint64(reader)))
    return int(uniform(np.uint64(mix(key, np.uint64(step)))) * n)


def _scores(reader, candidates, inside, population, posts, params, streams, now):
    if params.mode == "random":
        keys = np.array([posts.key[i] for i in candidates], np.uint64)
        return streams.uniform("feed order", reader, round_=now, index=keys).tolist() if candidates else []
    if params.mode == "chronological":
        return [0.0] * len(candidates)
    ids = np.array(candidates, np.int64)
    match = similarities(population.interests[np.full(len(ids), reader)], posts.vectors(ids))
    if params.mode == "preference":
        return match.astype(float).tolist()
    relevances = to_relevance(match).tolist()
    if params.mode == "diverse":
        return relevances
    return [_predicted(i, r, i in inside, posts, params.weights) for i, r in zip(candidates, relevances, strict=True)]


def _predicted(post, relevance, is_inside, posts, w):
    """Weighted predictions: those of engagement grow with relevance, those of displeasure shrink with it."""
    root = _root(posts, post)

    def rate(counter, prior):
        shown = int(posts.impressions[root]) + w.prior_impressions
        return (int(getattr(posts, counter)[root]) + prior * w.prior_impressions) / shown

    good = w.weight_like * rate("likes", w.rate_like) + w.weight_reshare * rate("reshares", w.rate_reshare)
    good += (w.weight_reply + w.weight_reply_engaged * w.reply_engaged) * rate("replies", w.rate_reply)
    good += w.weight_good_click * w.rate_good_click
    good += w.weight_profile_click * w.rate_profile_click
    bad = w.weight_negative * w.rate_negative + w.weight_report * w.rate_report
    score = 2 * (relevance * good + (1 - relevance) * bad)
    score = score if is_inside else _lowered(score, w.out_of_network_factor)
    return _lowered(score, w.reply_factor) if posts.kind[post] == REPLY else score


def _lowered(score, factor):
    if score >= 0:
        return score * factor
    return score / factor if factor else -math.inf


def _less_of_one_author(best, scored, posts, w):
    """Return scores, lowered for each better-ranked post of the same author."""
    by_author, lowered = {}, {}
    for i in best:
        before = by_author.setdefault(int(posts.author[i]), 0)
        by_author[int(posts.author[i])] += 1
        lowered[i] = _lowered(scored[i], (1 - w.author_floor) * w.author_decay**before + w.author_floor)
    return lowered
