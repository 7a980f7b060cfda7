"""What an LLM is told about tools, and what may be a tool."""

import json
import threading
from functools import partial
from typing import Annotated, Literal

import pytest
from pydantic import Field
from wall_tools import City, Wall

from prism_mesa.deliberation.tools import Tool, ToolRegistry
from prism_mesa.errors import ConfigError

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
    assert again.call_schema == registry.call_schema
    assert again.describe() == registry.describe()


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
    assert list(ToolRegistry([added])) == [added] == [Tool.wrap(wall.reply, name="answer", timeout_s=1)]


def untyped(post) -> None:
    """Read."""


def listed(*posts: int) -> None:
    """Read."""


def placed(post: int, /) -> None:
    """Read."""


def unheard_of(post: "Missing") -> None:  # noqa: F821
    """Read."""


def live(post: threading.Thread) -> None:
    """Read."""


def undocumented(post: int) -> None:
    pass


def documented(post: int) -> None:
    """Read."""


@pytest.mark.parametrize(
    ("function", "options", "told"),
    [
        (undocumented, {}, "tool undocumented: docstring"),
        (untyped, {}, "tool untyped: parameter post: has no type"),
        (listed, {}, r"tool listed: parameter \*posts"),
        (placed, {}, "tool placed: parameter post"),
        (unheard_of, {}, "tool unheard_of: parameter post: .*'Missing'"),
        (live, {}, "tool live: parameter post: .*Thread"),
        (documented, {"name": "read it"}, "tool 'read it': name"),
        (documented, {"name": "class"}, "tool 'class': name"),
        (documented, {"name": "taken"}, "tool taken: name: is taken"),
        (documented, {"timeout_s": 0}, "tool documented: timeout_s"),
        (documented, {"timeout_s": float("nan")}, "timeout_s: .* not nan"),
        (partial(documented, 1), {}, "tools: functools.partial"),
        (7, {}, "tools: 7"),
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
        ({"timeout_s": -1}, "timeout_s"),
        ({"timeout_s": True}, "timeout_s"),
        ({"result_cap": 79}, "result_cap"),
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
