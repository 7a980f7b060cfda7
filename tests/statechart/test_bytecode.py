"""Programs: an expression run by the register machine of the walk gives what the expression gives one agent."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_charts import CATEGORIES, expressions

from prism_mesa.kernels.compiling import kernel
from prism_mesa.kernels.programs import FAULT, run_program
from prism_mesa.social.fields import REGISTERS
from prism_mesa.social.round.columns import FIELDS
from prism_mesa.statechart import AgentState, F
from prism_mesa.statechart.bytecode import Compiler, Field

WHOLE = "timeout_threshold ticks_in_state scripted n_unread post_id likes replies reshares impressions velocity round"
WHOLE_FIELDS = {*WHOLE.split(), "author", "root"}


@kernel
def run_all(programs, register, out):
    for program in range(len(out)):
        out[program] = run_program(program, programs, register)


def known_fields():
    return {
        name: Field(i, CATEGORIES.get(name, ()), is_int32=name.partition(".")[2] in WHOLE_FIELDS)
        for i, name in enumerate(REGISTERS)
    }


def by_program(expression, values, programmer=None):
    """Return what the last program gives, 0, 1 or FAULT, with fields of these values; None if there is none."""
    programmer = Compiler(known_fields()) if programmer is None else programmer
    if programmer.add(expression) is None:
        return None
    programs = programmer.programs()
    register, out = programs.registers.copy(), np.zeros(len(programs.start) - 1, np.int64)
    for i, name in enumerate(REGISTERS):
        if name in CATEGORIES:
            register[i] = CATEGORIES[name].index(values[name]) if values[name] is not None else 255
        elif programs.used[i]:
            register[i] = values[name]
        else:
            register[i] = np.nan  # nobody may look at it
    run_all(programs, register, out)
    return int(out[-1])


def test_the_fields_that_are_read_are_marked_by_ones():
    programmer = Compiler(known_fields())
    programmer.add(F.post.likes > F.agent.energy)
    programmer.add(F.post.likes + F.post.replies > 2)
    used = dict(zip(REGISTERS, programmer.programs().used.tolist(), strict=True))
    assert {name: n for name, n in used.items() if n} == {"post.likes": 1, "post.replies": 1}


def by_row(expression, values):
    """Return what Python gives one agent and one post."""
    rows = {root: SimpleNamespace() for root in ("agent", "post")}
    for name, value in values.items():
        root, _, own = name.partition(".")
        setattr(rows[root], own, value)
    try:
        return int(bool(expression(rows["agent"], rows["post"])))
    except ZeroDivisionError:
        return FAULT


_numbers = st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(-5, 5)
_whole = st.sampled_from([0, 1, 2, 3, 2**31 - 1]) | st.integers(0, 9)
rows = st.fixed_dictionaries(
    {
        name: st.sampled_from([*CATEGORIES[name], *([None] if name == "agent.pending_action" else [])])
        if name in CATEGORIES
        else _whole
        if name.partition(".")[2] in WHOLE_FIELDS
        else _numbers
        for name in REGISTERS
    }
)
SOMEBODY = dict.fromkeys(REGISTERS, 1) | {name: names[0] for name, names in CATEGORIES.items()}


def test_all_fields_that_columns_hold_as_numbers_or_categories_can_be_read():
    texts = {"post.text", "post.author_name", "post.media_type", "post.media_description", "post.has_media"}
    assert FIELDS - set(REGISTERS) == texts | {"post.words", "post.about", "post.parent"}


@pytest.mark.parametrize(
    "expression",
    [
        F.post.likes + F.post.replies == 5,
        F.post.likes - F.post.replies == 1,
        F.post.likes * F.agent.activity == 0.75,
        F.post.likes / F.post.replies == 1.5,
        (F.post.likes < 3) | (F.post.likes <= 3),
        ~(F.post.likes > 3) & (F.post.likes >= 3),
    ],
)
def test_each_operator_gives_its_value(expression):
    values = SOMEBODY | {"post.likes": 3, "post.replies": 2, "agent.activity": 0.25}
    assert by_program(expression, values) == by_row(expression, values) == 1


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(expressions, st.lists(rows, min_size=1, max_size=3))
@example(1 / F.post.likes > 0, [SOMEBODY | {"post.likes": 0}])
@example((F.post.likes == 0) | (1 / F.post.likes > 0), [SOMEBODY | {"post.likes": 0}])
@example(F.agent.pending_action != "like", [SOMEBODY | {"agent.pending_action": None}])
@example((F.agent.activity * 1e300 * 1e300 - F.agent.activity * 1e300 * 1e300) & True, [SOMEBODY])
def test_a_program_gives_what_the_expression_gives_each_row(expression, many):
    for values in many:
        found = by_program(expression, values)
        assert found in (None, by_row(expression, values)), str(expression)


@pytest.mark.parametrize(
    "expression",
    [
        F.agent.name == "Alma",
        F.post.has_media == 1,
        F.agent.state < "m",
        F.agent.state,
        F.agent.state == F.agent.pending_action,
        F.agent.activity == "high",
        F.agent.pending_action == 1,
        F.post.likes * F.post.replies > 0,  # up to 2**62: Python is exact there, float64 is not
        F.post.likes + (2**53 - 1) > 0,
        F.post.likes > 2**53,
        (F.agent.activity > 0.5) & (F.agent.mood == 1),
    ],
)
def test_what_only_python_can_do_has_no_program_and_leaves_no_trace(expression):
    programmer = Compiler(known_fields())
    first = F.post.likes > 2
    assert by_program(first, SOMEBODY, programmer) == 0
    assert programmer.add(expression) is None
    assert by_program(first, SOMEBODY | {"post.likes": 3}, programmer) == 1
    assert len(programmer.programs().start) == 3


@pytest.mark.parametrize("state", list(AgentState))
def test_a_category_compares_with_a_member_as_with_its_text(state):
    values = SOMEBODY | {"agent.state": state.value}
    assert by_program(F.agent.state == state, values) == 1
    assert by_program(state.value != F.agent.state, values) == 0
    assert by_program(F.agent.state == "nowhere", values) == 0
