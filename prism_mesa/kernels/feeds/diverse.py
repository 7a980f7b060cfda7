"""Fewer of one author, or of one group, in a feed."""

from typing import Any

import numpy as np

from prism_mesa.kernels.compiling import part_of_kernels, step_of_kernels
from prism_mesa.kernels.feeds.outbox import Outbox, writer_of
from prism_mesa.kernels.feeds.room import Room
from prism_mesa.kernels.feeds.scoring import DIVERSE, Scoring, lowered, sort_key
from prism_mesa.kernels.ordering import put_in_order


@step_of_kernels
def order_diverse(n: Any, outbox: Outbox, scoring: Scoring, room: Room) -> None:
    """Bring the first `n` of `Room.best` into an order in which further posts of one author score less.

    So do those of one group, where feeds are by groups. `Room.order` gets their places.
    """
    _lower_authors(n, outbox, scoring, room)
    put_in_order(room.key, n, room.order, room.scratch, room.counts)
    if scoring.mode == DIVERSE and scoring.n_groups > 0:
        _lower_groups(n, scoring, room)
        put_in_order(room.key, n, room.order, room.scratch, room.counts)


@part_of_kernels
def _lower_authors(n: Any, outbox: Outbox, scoring: Scoring, room: Room) -> None:
    for k in range(n):
        one, writer = room.best[k], _writer(room.best[k], outbox, scoring, room)
        room.score[one] = lowered(room.score[one], _factor(room.better[writer], scoring))
        room.key[k] = sort_key(room.score[one], room.tag[one])
        room.better[writer] += 1
    for k in range(n):
        room.better[_writer(room.best[k], outbox, scoring, room)] = 0


@part_of_kernels
def _writer(one: Any, outbox: Outbox, scoring: Scoring, room: Room) -> Any:
    author = scoring.author[outbox.first + np.int64(room.tag[one] >> np.uint32(1))]
    return writer_of(outbox.wrote, outbox.writers, author)


@part_of_kernels
def _factor(before: Any, scoring: Scoring) -> Any:
    """Return the factor of a score with so many better-ranked posts of the same author."""
    if len(scoring.diversity) == 0:
        return 1.0 / (1.0 + before)
    return scoring.diversity[min(before, len(scoring.diversity) - 1)]


@step_of_kernels
def _lower_groups(n: Any, scoring: Scoring, room: Room) -> None:
    """Divide scores by 1 + how many better ones are by authors of roots of the same group."""
    for group in range(scoring.n_groups):
        room.of_group[group] = 0
    for i in range(n):
        place = room.order[i]
        one = room.best[place]
        group = scoring.group[scoring.author[room.root[one]]]
        room.key[place] = sort_key(lowered(room.score[one], 1.0 / (1.0 + room.of_group[group])), room.tag[one])
        room.of_group[group] += 1
