"""Rules that kernels repeat for speed are those of the platform; `test_rows_and_columns` holds whole rounds equal."""

import numpy as np
from worlds import ran, small

from prism_mesa.kernels.matching import compute_match, match_to_relevance
from prism_mesa.social.fields import FIELD_VALUES, REGISTERS
from prism_mesa.social.round.columns import FIELDS
from prism_mesa.social.state.population import pack_move, unpack_codes, unpack_move
from prism_mesa.social.state.posts import similarities, to_relevance
from prism_mesa.social.state.topics import UNIT
from prism_mesa.statechart import STATES, AgentState


def test_relevance_is_the_same_number_for_every_similarity():
    every = np.arange(-(UNIT**2) - 300, UNIT**2 + 300)
    assert to_relevance(every).tolist() == [match_to_relevance(match, float(UNIT**2)) for match in every]
    assert to_relevance(np.array([-(UNIT**2), 0, UNIT**2])).tolist() == [0, 0.5, 1]


def test_similarity_is_the_same_number_for_longest_and_mixed_vectors():
    rng = np.random.default_rng(7)
    vectors = np.concatenate([rng.integers(-127, 128, (40, 16)), np.full((1, 16), 127), np.full((1, 16), -127)])
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) * UNIT).astype(np.int8)
    rows, texts = np.repeat(np.arange(42), 42), np.tile(np.arange(42), 42)
    found = [compute_match(vectors, vectors, row, text) for row, text in zip(rows, texts, strict=True)]
    assert similarities(vectors[rows], vectors[texts]).tolist() == found


def test_what_the_walk_writes_into_histories_is_a_packed_move():
    model = ran(small(), 3)
    declared = {(t.trigger, t.source, t.target) for t in model.chart.transitions}
    oracle = {(t.trigger, t.source) for t in model.chart.transitions if t.target is None}
    for agent in model.agents:
        for move, _, _ in model.history.entries(agent.row):
            trigger, source, target = unpack_move(move)
            assert pack_move(trigger, source.code, target.code) == move
            name = model.chart.triggers[trigger]
            assert (name, source, target) in declared or (name, source) in oracle
    assert int(model.history.count.sum()) > 100


def test_a_move_is_packed_and_unpacked_for_one_and_for_many():
    moves = [(trigger, source.code, target.code) for trigger in (0, 1, 255) for source in STATES for target in STATES]
    packed = np.array([pack_move(*move) for move in moves], np.uint16)
    assert np.array(unpack_codes(packed)).T.tolist() == [list(move) for move in moves]
    assert unpack_move(pack_move(5, AgentState.SCROLLING.code, AgentState.EVALUATING.code)) == (
        5,
        AgentState.SCROLLING,
        AgentState.EVALUATING,
    )


def test_what_kernels_read_are_fields_with_known_values_and_a_column():
    assert set(REGISTERS) <= FIELD_VALUES.keys()
    assert set(REGISTERS) <= FIELDS
