"""Cells with many guards."""

import pytest

from prism_mesa.statechart import AgentState, F, Transition
from prism_mesa.statechart.selection import Cell


@pytest.mark.parametrize(("n_guards", "fits"), [(39, True), (40, False)])
def test_keys_of_39_guards_fit_into_64_bit_integers(n_guards, fits):
    many = tuple(
        Transition("decides", AgentState.EVALUATING, AgentState.COMPOSING, F.post.likes > i) for i in range(n_guards)
    )
    assert Cell(many, oracle_enabled=True).fits_int64 == fits
