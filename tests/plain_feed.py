"""A feed in plain Python, one reader at a time, from the texts of `rank_feeds`, `FeedParams` and `XAlgoParams`.

No kernel helps it, but for the keyed draws; it is slow, and meant to be read.
"""

import math

import numpy as np

from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.social.state.posts import REPLY, matches, relevance_of


def plain_feed(reader, population, posts, seen, network, params, streams, now, hidden=frozenset()):
    """Return the feed of one reader, best first; `seen` holds the roots that it has read, `hidden` muted authors."""
    follows = set(network.followees(reader).tolist())
    visible = [i for i in range(len(posts)) if now - params.window < posts.round[i] <= now]
    inside = {i for i in visible if int(posts.author[i]) in follows}
    shown = inside | _drawn(reader, visible, posts, network, follows, params, streams, now)
    shown = {i for i in shown if int(posts.author[i]) not in hidden}
    fresh = [i for i in sorted(shown) if _root(posts, i) not in seen and int(posts.author[_root(posts, i)]) != reader]
    scored = dict(zip(fresh, _scores(reader, fresh, inside, population, posts, params, streams, now), strict=True))
    best, roots = [], set()
    for i in _best_first(scored):
        if _root(posts, i) not in roots:
            roots.add(_root(posts, i))
            best.append(i)
    if params.weights:
        best = _best_first(_less_of_one_author(best, scored, posts, params.weights))
    return best[: params.size]


def _root(posts, post):
    return int(posts.root[post])


def _best_first(scored):
    """Return posts by their scores as float32; ties go to the newer one."""
    with np.errstate(over="ignore"):
        return sorted(scored, key=lambda post: (float(np.float32(scored[post])), post), reverse=True)


def _drawn(reader, visible, posts, network, follows, params, streams, now):
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
    roots = [i for i in visible if _root(posts, i) == i and posts.velocity[i] > 0]
    found |= set(sorted(roots, key=lambda i: (int(posts.velocity[i]), i), reverse=True)[: also.trending])
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
    key = np.uint64(mixed(np.uint64(mixed(streams.key("two hops", now, 0), np.uint64(draw))), np.uint64(reader)))
    return int(unit(np.uint64(mixed(key, np.uint64(step)))) * n)


def _scores(reader, candidates, inside, population, posts, params, streams, now):
    if params.mode == "random":
        return [streams.uniform("feed order", reader, round_=now, index=posts.key[i])[0] for i in candidates]
    if params.mode == "chronological":
        return [0.0] * len(candidates)
    ids = np.array(candidates, np.int64)
    match = matches(population.interests[np.full(len(ids), reader)], posts.vectors(ids))
    if params.mode == "preference":
        return match.astype(float).tolist()
    relevances = relevance_of(match).tolist()
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
