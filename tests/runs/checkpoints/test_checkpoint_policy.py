"""When checkpoints are made: a minute at most is lost, and a twentieth of the time at most is spent."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.runs.checkpoints.keeping import CheckpointSchedule


def carried_out(round_s, cost_s, total_s=2000.0, **how):
    """Return the seconds between checkpoints, and the share of the time they took, of a run of rounds all alike."""
    now = [0.0]
    policy, done, made = CheckpointSchedule(clock=lambda: now[0], **how), 0, [0.0]
    spent = 0.0
    while now[0] < total_s:
        now[0] += round_s
        done += 1
        if policy.is_due(done):
            spent += cost_s
            now[0] += cost_s
            policy.note_cost(cost_s)
            made.append(now[0])
    gaps = [b - a - cost_s for a, b in pairwise(made)]
    return gaps, spent / now[0]


@pytest.mark.slow
@given(st.floats(0.01, 20.0), st.floats(0.0, 1.5))
def test_no_more_than_a_minute_is_lost_and_no_more_than_a_twentieth_is_spent(round_s, cost_s):
    gaps, share = carried_out(round_s, cost_s)
    assert gaps
    assert max(gaps) + cost_s <= 60.0  # killed as the next one is made
    assert share <= 0.05


def test_a_round_that_lasts_for_hours_is_kept_at_once():
    gaps, _ = carried_out(3600.0, 0.5, total_s=36_000.0)
    assert gaps == [3600.0] * 10


@pytest.mark.slow
@given(st.floats(0.1, 10.0), st.floats(3.0, 60.0))
def test_what_costs_much_is_made_seldom(round_s, cost_s):
    _, share = carried_out(round_s, cost_s, total_s=20_000.0)
    assert share <= 0.05


def test_a_short_run_makes_none():
    assert carried_out(0.5, 0.1, total_s=40.0) == ([], 0.0)


def test_every_so_many_rounds_is_every_so_many_rounds():
    policy = CheckpointSchedule(3)
    assert [done for done in range(1, 11) if policy.is_due(done)] == [3, 6, 9]


def test_a_machine_that_slept_for_days_makes_one_and_then_goes_on_as_before():
    now, made = [0.0], []
    policy = CheckpointSchedule(clock=lambda: now[0])
    for done in range(1, 401):
        now[0] += 1.0 + (1e6 if done == 100 else 0.0)
        if policy.is_due(done):
            policy.note_cost(0.1)
            made.append(done)
    assert 100 in made
    assert max(b - a for a, b in pairwise([0, *made])) <= 60
    assert len(made) <= 9
