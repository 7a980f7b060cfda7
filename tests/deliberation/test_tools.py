"""Tools: what a function's signature says to an LLM, and calls of which nothing is ever raised."""

import asyncio
import json
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import partial, wraps
from typing import Annotated, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from prism_mesa.deliberation.tools import LEAST_CAP, Tool, ToolRegistry, ToolResult
from prism_mesa.errors import BadInputError, ConfigError

Vote = Enum("Vote", {"UP": "up", "DOWN": "down"})
HERE = ContextVar("HERE", default="nowhere")


class City(BaseModel):
    city: str
    near: list["City"] = []


@dataclass
class Wall:
    """A platform of which tools are methods."""

    said: list

    def reply(self, post: int, text: str) -> str:
        """Reply to a post.

        Args:
            post: its number.
            text (str): what you say,
                in full.

        Returns:
            post: nothing of this is told.
        """
        self.said.append((post, text))
        return f"replied to {post}"

    def vote(self, post: int, kind: Vote = Vote.UP, *, weight: float = 1.0) -> "UnknownHere":  # noqa: F821
        """Vote for a post,
        or against it
        """
        return {"post": post, "kind": kind, "weight": weight}


@pytest.fixture
def wall():
    return Wall([])


@pytest.fixture
def registry(wall):
    return ToolRegistry([wall.reply, wall.vote], timeout_s=None)


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


# what an LLM is told


def test_a_prompt_has_one_line_for_each_tool(registry):
    assert registry.describe().splitlines() == [
        "- reply(post: int, text: str): Reply to a post. post: its number. text: what you say, in full.",
        "- vote(post: int, kind: 'up' | 'down' = 'up', weight: float = 1.0): Vote for a post, or against it.",
    ]


def test_types_read_as_python_writes_them():
    def look(
        tags: list[str],
        where: City,
        kind: Literal["new", "top"] | None = None,
        count: Annotated[int, Field(ge=1, description="how many")] = 3,
        rest: object = object(),
    ) -> None:
        """Look!"""

    assert ToolRegistry([look]).describe() == (
        "- look(tags: list[str], where: {city: str, near: list}, kind: 'new' | 'top' | None = None, count: int = 3,"
        " rest: any = ...): Look! count: how many."
    )


def test_the_schema_of_a_call_admits_one_tool_with_its_own_parameters(registry):
    reply, vote = registry.call_schema["anyOf"]
    assert reply == {
        "type": "object",
        "properties": {
            "tool_name": {"type": "string", "const": "reply"},
            "parameters": {
                "type": "object",
                "properties": {
                    "post": {"type": "integer", "description": "its number."},
                    "text": {"type": "string", "description": "what you say, in full."},
                },
                "required": ["post", "text"],
                "additionalProperties": False,
            },
            "reasoning": {"type": "string", "maxLength": 120},
        },
        "required": ["tool_name", "parameters", "reasoning"],
        "additionalProperties": False,
    }
    assert vote["properties"]["parameters"]["properties"]["kind"] == {
        "type": "string",
        "enum": ["up", "down"],
        "default": "up",
    }


def test_a_schema_has_no_references_and_a_type_within_itself_may_there_be_anything():
    def go(to: City, title: str, by: City | None = None) -> None:
        """Go."""

    registry = ToolRegistry([go])
    assert "$" not in json.dumps(registry.call_schema)
    properties = registry.call_schema["anyOf"][0]["properties"]["parameters"]["properties"]
    assert properties["title"] == {"type": "string"}
    assert properties["to"]["properties"]["near"] == {"type": "array", "items": {}, "default": []}
    assert registry.execute("go", {"to": {"city": "a", "near": [{"city": 1}]}, "title": "x"}).text == (
        "to.near.0.city: Input should be a valid string, not 1"
    )


def test_what_is_told_of_methods_does_not_depend_on_whose_they_are(registry):
    other = Wall([])
    again = ToolRegistry([other.reply, other.vote])
    assert again.call_schema is registry.call_schema
    assert again.describe() is registry.describe()


def test_without_tools_there_is_nothing_to_tell_and_nothing_to_call():
    registry = ToolRegistry()
    assert (registry.describe(), registry.call_schema, len(registry), list(registry)) == ("", None, 0, [])
    assert registry.execute("reply", {}).text == "There is no tool 'reply'. The tools are: none."


# what may be a tool


def test_tools_are_added_by_call_and_by_decorator(wall):
    registry = ToolRegistry(timeout_s=3.0)

    @registry.tool
    def wait() -> None:
        """Wait."""

    @registry.tool(name="rest", timeout_s=None)
    def sleep() -> None:
        """Sleep."""

    added = registry.add(wall.reply, name="answer", timeout_s=1)
    assert wait() is sleep() is None
    assert registry.names == ("wait", "rest", "answer")
    assert [tool.timeout_s for tool in registry] == [3.0, None, 1]
    assert ("rest" in registry, "sleep" in registry, 7 in registry, len(registry)) == (True, False, False, 3)
    assert list(ToolRegistry([added])) == [added] == [Tool.of(wall.reply, name="answer", timeout_s=1)]


def test_a_tool_made_by_hand_is_told_as_it_says(wall):
    tool = Tool("say", "Say it", {"type": "object", "properties": {"text": {"type": "string"}}}, wall.reply, None)
    assert ToolRegistry([tool]).describe() == "- say(text: str = ...): Say it."


def untyped(post) -> None:
    """Read."""


def listed(*posts: int) -> None:
    """Read."""


def keyed(**posts: int) -> None:
    """Read."""


def placed(post: int, /) -> None:
    """Read."""


def unheard_of(post: "Missing") -> None:  # noqa: F821
    """Read."""


def live(post: threading.Thread) -> None:
    """Read."""


def called(post: type(print)) -> None:
    """Read."""


def undocumented(post: int) -> None:
    pass


def documented(post: int) -> None:
    """Read."""


@pytest.mark.parametrize(
    ("function", "options", "told"),
    [
        (undocumented, {}, r"^tool undocumented: docstring: there is none; its first paragraph is what"),
        (untyped, {}, r"^tool untyped: parameter post: has no type; it needs one that JSON can hold$"),
        (Wall.reply, {}, r"^tool reply: parameter self: has no type"),
        (listed, {}, r"^tool listed: parameter \*posts: int: cannot be given by name; allowed: name: type"),
        (keyed, {}, r"^tool keyed: parameter \*\*posts: int: cannot be given by name"),
        (placed, {}, r"^tool placed: parameter post: int: cannot be given by name"),
        (unheard_of, {}, r"^tool unheard_of: parameter post: its type must be .* NameError: name 'Missing'"),
        (live, {}, r"^tool live: parameter post: its type must be one that JSON can hold, .*Thread"),
        (called, {}, r"^tool called: parameter post: its type must be one that JSON can hold"),
        (documented, {"name": "read it"}, r"^tool 'read it': name: must be a Python identifier, such as 'read_feed'$"),
        (documented, {"name": "class"}, r"^tool 'class': name: must be a Python identifier"),
        (lambda: None, {}, r"^tool <lambda>: docstring: there is none"),
        (
            documented,
            {"name": "taken"},
            r"^tool taken: name: is taken; each tool needs one of its own \(name=\.\.\.\)$",
        ),
        (documented, {"timeout_s": 0}, r"^tool documented: timeout_s: must be a number of seconds above 0, or None"),
        (documented, {"timeout_s": float("nan")}, r"timeout_s: must be a number of seconds above 0, or None, not nan$"),
        (documented, {"timeout_s": 1e300}, r"timeout_s: must be a number of seconds above 0"),
        (documented, {"timeout_s": "1"}, r"timeout_s: must be a number of seconds above 0, or None, not '1'$"),
        (partial(documented, 1), {}, r"^tools: functools.partial.*: must be a function or a method; wrap it in one$"),
        (print, {}, r"^tools: <built-in function print>: must be a function or a method"),
        (7, {}, r"^tools: 7: must be a function or a method"),
    ],
)
def test_what_cannot_be_a_tool_is_said_in_one_line(function, options, told):
    registry = ToolRegistry()
    registry.add(documented, name="taken")
    with pytest.raises(ConfigError, match=told) as caught:
        registry.add(function, **options)
    assert "\n" not in str(caught.value)
    assert registry.names == ("taken",)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeout_s": -1}, "^tools: timeout_s: must be a number of seconds above 0, or None, not -1$"),
        ({"timeout_s": True}, "^tools: timeout_s: must be a number of seconds above 0, or None, not True$"),
        ({"result_cap": 79}, "^tools: result_cap: must be at least 80, not 79$"),
    ],
)
def test_a_registry_refuses_numbers_that_it_cannot_keep_to(options, told):
    with pytest.raises(ConfigError, match=told):
        ToolRegistry(**options)


def test_parameters_may_have_names_that_pydantic_uses_itself():
    def odd(json: int, model_config: int, copy: int = 2, _x: int = 3, schema: int = 4) -> int:
        """Odd."""
        return json + 10 * model_config + 100 * copy + 1000 * _x + 10_000 * schema

    registry = ToolRegistry([odd])
    assert registry.execute("odd", {"json": 1, "model_config": 5, "schema": 6}).text == "63251"
    assert registry.execute("odd", {"p0": 1, "json": 1, "model_config": 5}).reason == "bad-parameters"


def test_a_default_is_the_functions_own():
    kept = []

    def keep(text: str, where: list[str] = kept) -> None:
        """Keep."""
        where.append(text)

    assert ToolRegistry([keep]).execute("keep", {"text": "a"}).text == "done"
    assert kept == ["a"]


# calls


def test_a_call_runs_the_tool_with_what_was_given(registry, wall):
    assert registry.execute("reply", {"post": 3, "text": "No."}) == ToolResult(ok=True, text="replied to 3")
    assert registry.execute("vote", {"post": "4", "kind": "down"}).text == '{"post":4,"kind":"down","weight":1.0}'
    assert wall.said == [(3, "No.")]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"post": 1}, ["text: is missing; allowed: str, what you say, in full."]),
        (
            {"post": "x", "text": 5},
            ["post: Input should be a valid integer, unable to", "text: Input should be a valid"],
        ),
        ({"post": True, "text": ""}, ["post: Input should be a number, not True"]),
        ({"post": float("nan"), "text": ""}, ["post: Input should be a finite number, not nan"]),
        (
            {"post": 1, "text": "", "txt": 2},
            ["txt: there is no such parameter; allowed: post, text. Did you mean 'text'?"],
        ),
        ({"post": 1, "text": "", 2: 2}, ["2: there is no such parameter; allowed: post, text."]),
        ({"post": 1, "text": "", "a\nb": 2}, ["a b: there is no such parameter; allowed: post, text."]),
        ({"post": "9" * 10_000, "text": ""}, ["post: Unable to parse input string as an integer"]),
        ([1, "x"], ["parameters: must be an object (its keys: post, text), not [1, 'x']"]),
        (None, ["parameters: must be an object (its keys: post, text), not None"]),
        ("post", ["parameters: must be an object (its keys: post, text), not 'post'"]),
        ({str(i): i for i in range(10)}, ["post: is missing", "text: is missing", "0: ", "1: ", "2: ", "and 7 more"]),
    ],
)
def test_parameters_that_are_not_allowed_are_told_line_by_line_and_nothing_is_run(registry, wall, parameters, told):
    result = registry.execute("reply", parameters)
    lines = result.text.splitlines()
    assert (result.ok, result.reason, len(lines), wall.said) == (False, "bad-parameters", len(told), [])
    assert all(line.startswith(start) for line, start in zip(lines, told, strict=True))
    assert all(len(line) < 250 for line in lines)


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
        (ValueError(), "ValueError", "ValueError"),
        (BadInputError("post: 9 is not here"), "post: 9 is not here", "BadInputError"),
        (TimeoutError("of a server"), "TimeoutError: of a server", "TimeoutError"),
        (NoWordsError(), "NoWordsError", "NoWordsError"),
        (GeneratorExit("out"), "GeneratorExit: out", "GeneratorExit"),
        (RuntimeError("\ud800"), "RuntimeError: ?", "RuntimeError"),
    ],
)
def test_an_exception_is_an_observation(error, text, reason):
    assert raising(error) == ToolResult(ok=False, text=text, reason=reason)


@pytest.mark.parametrize("timeout_s", [None, 60])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_or_exit_is_raised(kind, timeout_s):
    def leave() -> None:
        """Leave."""
        raise kind("now")

    with pytest.raises(kind, match="now"):
        ToolRegistry([leave], timeout_s=timeout_s).execute("leave", {})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "done"),
        ("two\nlines", "two\nlines"),
        ("", ""),
        (7, "7"),
        ({"a": [1, None, "é"]}, '{"a":[1,null,"é"]}'),
        (float("nan"), '"NaN"'),
        (np.int64(3), "3"),
        (np.array([0.5, 1.5]), "[0.5,1.5]"),
        (City(city="Rome"), '{"city":"Rome","near":[]}'),
        (Wall(["a"]), '{"said":["a"]}'),
        (Vote.UP, '"up"'),
        ((n for n in (1, 2)), "[1,2]"),
        ("half \ud83d", "half ?"),
        (["half \ud83d"], '["half ?"]'),
    ],
)
def test_a_result_is_text_or_json(value, text):
    assert result_of(value) == ToolResult(ok=True, text=text)


def test_a_result_that_json_cannot_hold_is_told_all_the_same():
    circle = []
    circle.append(circle)
    assert result_of(circle).text == "[[[[[[[...]]]]]]]"
    assert result_of([10**5000]).ok
    assert result_of({(1, 2): 3}).ok


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

    result = ToolRegistry([take], timeout_s=None, result_cap=LEAST_CAP).execute(name, parameters)
    assert result.ok == (result.reason == "")
    assert len(result.text) <= LEAST_CAP
    assert ToolResult.model_validate_json(result.model_dump_json()) == result


def test_parameters_nested_too_deeply_or_without_end_are_no_crash():
    def take(any: object) -> object:
        """Take."""
        return any

    deep, circle = [], {}
    for _ in range(100_000):
        deep = [deep]
    circle["any"] = circle
    registry = ToolRegistry([take], timeout_s=None)
    assert registry.execute("take", {"any": deep}).reason == "bad-parameters"
    assert registry.execute("take", circle).reason == "bad-parameters"
    while deep:  # taken apart from outside: the interpreter's own way back is as deep
        deep = deep[0]


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


def test_a_coroutine_that_blocks_its_loop_is_given_up_too():
    end = threading.Event()

    async def block() -> None:
        """Block."""
        end.wait(60)

    assert ToolRegistry([block], timeout_s=0.01).execute("block", {}).reason == "timeout"
    end.set()


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


def test_a_time_out_of_a_tools_own_is_told_as_its_own():
    async def ask() -> None:
        """PlacedQuestion."""
        raise TimeoutError("of a server")

    assert ToolRegistry([ask], timeout_s=60).execute("ask", {}).reason == "TimeoutError"


def test_only_a_tool_without_time_out_runs_in_the_callers_thread():
    def where() -> str:
        """Tell where."""
        return f"{threading.current_thread() is threading.main_thread()}, {HERE.get()}"

    registry = ToolRegistry([where], timeout_s=60)
    registry.add(where, name="here", timeout_s=None)
    token = HERE.set("Rome")
    assert [registry.execute(name, {}).text for name in registry.names] == ["False, Rome", "True, Rome"]
    HERE.reset(token)


def test_many_threads_may_call_at_once(registry, wall):
    def call():
        time.sleep(0)
        ToolRegistry([wall.reply]).execute("reply", {"post": 1, "text": ""})

    threads = [threading.Thread(target=call) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wall.said == [(1, "")] * 20
