"""Tools called by an LLM: parameters, results, exceptions, threads and time."""

import asyncio
import threading
from contextvars import ContextVar
from functools import wraps

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wall_tools import City, Vote, Wall

from prism_mesa.deliberation.tools import MIN_CAP, ToolRegistry, ToolResult
from prism_mesa.errors import BadInputError

HERE = ContextVar("HERE", default="nowhere")


def raising(error):
    def fail() -> None:
        """Fail."""
        raise error

    return ToolRegistry([fail], timeout_s=None).execute("fail", {})


def result_of(value, **options):
    def give() -> object:
        """Give."""
        return value

    return ToolRegistry([give], timeout_s=None, **options).execute("give", {})


# calls


def test_a_call_runs_the_tool_with_what_was_given(registry, wall):
    assert registry.execute("reply", {"post": 3, "text": "No."}) == ToolResult(ok=True, text="replied to 3")
    assert registry.execute("vote", {"post": "4", "kind": "down"}).text == '{"post":4,"kind":"down","weight":1.0}'
    assert wall.said == [(3, "No.")]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"post": 1}, ["text: is missing; allowed: str, what you say, in full."]),
        ({"post": "x", "text": 5}, ["post: Input should be a valid integer", "text: Input should be a valid string"]),
        ({"post": True, "text": ""}, ["post: Input should be a number, not True"]),
        ({"post": 1, "text": "", "txt": 2}, ["txt: there is no such parameter; allowed: post, text. Did you mean"]),
        ({"post": 1, "text": "", "a\nb": 2}, ["a b: there is no such parameter"]),
        ([1, "x"], ["parameters: cannot be read"]),
        ({str(i): i for i in range(10)}, ["post: is missing", "text: is missing", "0: ", "1: ", "2: ", "and 7 more"]),
    ],
)
def test_parameters_that_are_not_allowed_are_told_line_by_line_and_nothing_is_run(registry, wall, parameters, told):
    result = registry.execute("reply", parameters)
    lines = result.text.splitlines()
    assert (result.ok, result.reason, len(lines), wall.said) == (False, "bad-parameters", len(told), [])
    assert all(line.startswith(start) for line, start in zip(lines, told, strict=True))


def test_an_unknown_tool_is_told_with_the_nearest(registry):
    said = ToolResult(
        ok=False,
        text="There is no tool 'replly'. Did you mean 'reply'? The tools are: reply, vote.",
        reason="unknown-tool",
    )
    assert registry.execute("replly", {}) == said
    assert registry.execute(["reply"], {}).reason == "unknown-tool"
    assert len(registry.execute("reply" * 100_000, {}).text) < 200


class NoWordsError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "text", "reason"),
    [
        (KeyError("x"), "KeyError: 'x'", "KeyError"),
        (BadInputError("post: 9 is not here"), "post: 9 is not here", "BadInputError"),
        (TimeoutError("of a server"), "TimeoutError: of a server", "TimeoutError"),
        (NoWordsError(), "NoWordsError", "NoWordsError"),
        (RuntimeError("\ud800"), "RuntimeError: ?", "RuntimeError"),
    ],
)
def test_an_exception_is_an_observation(error, text, reason):
    assert raising(error) == ToolResult(ok=False, text=text, reason=reason)


@pytest.mark.parametrize("timeout_s", [None, 60])
def test_an_interrupt_is_raised(timeout_s):
    def leave() -> None:
        """Leave."""
        raise KeyboardInterrupt("now")

    with pytest.raises(KeyboardInterrupt, match="now"):
        ToolRegistry([leave], timeout_s=timeout_s).execute("leave", {})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "done"),
        ("two\nlines", "two\nlines"),
        ({"a": [1, None, "é"]}, '{"a":[1,null,"é"]}'),
        (float("nan"), '"NaN"'),
        (np.array([0.5, 1.5]), "[0.5,1.5]"),
        (Wall(["a"]), '{"said":["a"]}'),
        (Vote.UP, '"up"'),
        ("half \ud83d", "half ?"),
        (["half \ud83d"], '["half ?"]'),
    ],
)
def test_a_result_is_text_or_json(value, text):
    assert result_of(value) == ToolResult(ok=True, text=text)


def test_a_long_result_is_cut_and_says_so():
    result = result_of("x" * 5000, result_cap=100)
    assert result == ToolResult(ok=True, text="x" * 77 + "… [4923 characters cut]")
    assert len(result_of("x" * 1000).text) == 1000 == result_of("x" * 1000).text.count("x")
    assert len(raising(ValueError("y" * 5000)).text) == 1000


# JSON-like, and somewhat beyond
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.just("\ud800")
    | st.binary(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=4) | st.integers(), below, max_size=3),
    max_leaves=8,
)


named = st.dictionaries(st.sampled_from(["post", "text", "where", "any", "\ud800"]), anything)


@given(name=st.sampled_from(["take", "tak", ""]) | anything, parameters=named | anything)
def test_no_call_is_ever_raised(name, parameters):
    def take(post: int, text: str = "", where: City | None = None, any: object = None) -> list:
        """Take."""
        return [post, text, where, any]

    result = ToolRegistry([take], timeout_s=None, result_cap=MIN_CAP).execute(name, parameters)
    assert result.ok == (result.reason == "")
    assert len(result.text) <= MIN_CAP
    assert ToolResult.model_validate_json(result.model_dump_json()) == result


# time


def test_a_tool_that_takes_too_long_is_given_up():
    end = threading.Event()

    def wait() -> None:
        """Wait."""
        end.wait(60)

    result = ToolRegistry([wait], timeout_s=0.01).execute("wait", {})
    end.set()
    assert result == ToolResult(ok=False, text="no result within 0.01 s; it was given up", reason="timeout")


def test_a_coroutine_that_takes_too_long_really_ends():
    ended = []

    async def wait() -> None:
        """Wait."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(True)
            raise

    assert ToolRegistry([wait], timeout_s=0.01).execute("wait", {}).reason == "timeout"
    assert ended == [True]


@pytest.mark.parametrize("timeout_s", [None, 60])
def test_coroutines_run_also_inside_a_running_loop(timeout_s):
    async def double(n: int) -> int:
        """Double."""
        await asyncio.sleep(0)
        return 2 * n

    @wraps(double)
    def wrapped(n: int):
        return double(n)

    registry = ToolRegistry([double], timeout_s=timeout_s)
    registry.add(wrapped, name="wrapped")

    async def within():
        return [registry.execute(name, {"n": 4}).text for name in registry.names]

    assert asyncio.run(within()) == ["8", "8"]


def test_only_a_tool_without_time_out_runs_in_the_callers_thread():
    def where() -> str:
        """Tell where."""
        return f"{threading.current_thread() is threading.main_thread()}, {HERE.get()}"

    registry = ToolRegistry([where], timeout_s=60)
    registry.add(where, name="here", timeout_s=None)
    token = HERE.set("Rome")
    assert [registry.execute(name, {}).text for name in registry.names] == ["False, Rome", "True, Rome"]
    HERE.reset(token)
