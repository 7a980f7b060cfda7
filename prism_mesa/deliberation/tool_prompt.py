"""What an LLM is told of tools before it calls one: a line for the prompt, and the JSON schema of a call."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from prism_mesa.deliberation.text import shown

type Schema = dict[str, Any]

_REASONING_CAP: Final = 120
_TYPE_NAMES: Final = {
    "integer": "int",
    "number": "float",
    "string": "str",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}


@dataclass(frozen=True)
class Description:
    """What a prompt and a schema say of a tool: the same for all objects whose method it is."""

    name: str
    description: str
    parameters: Schema = field(hash=False)


@lru_cache(maxsize=256)
def lines(tools: tuple[Description, ...]) -> str:
    """Return one line for each tool: name, parameters, what it does, what the parameters are."""
    return "\n".join(map(_line, tools))


def _line(tool: Description) -> str:
    needed = tool.parameters.get("required", ())
    names, said = [], [_sentence(tool.description)]
    for name, schema in tool.parameters.get("properties", {}).items():
        default = shown(schema["default"]) if "default" in schema else "" if name in needed else "..."
        names.append(f"{name}: {type_name(schema)}" + (f" = {default}" if default else ""))
        if schema.get("description"):
            said.append(_sentence(f"{name}: {schema['description']}"))
    return f"- {tool.name}({', '.join(names)}): {' '.join(said)}"


def _sentence(text: str) -> str:
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def type_name(schema: Any) -> str:
    """Return what a schema allows, as Python writes types.

    >>> type_name({"type": "array", "items": {"enum": ["up", "down"]}})
    "list['up' | 'down']"
    """
    match schema:
        case {"const": one}:
            return repr(one)
        case {"enum": values}:
            return " | ".join(map(repr, values))
        case {"anyOf": kinds} | {"oneOf": kinds}:
            return " | ".join(dict.fromkeys(map(type_name, kinds)))
        case {"type": "array", "items": item} if item:
            return f"list[{type_name(item)}]"
        case {"type": "object", "properties": parts}:
            return "{" + ", ".join(f"{name}: {type_name(part)}" for name, part in parts.items()) + "}"
        case {"type": str(kind)}:
            return _TYPE_NAMES[kind]
    return "any"


@lru_cache(maxsize=256)
def call_schema(tools: tuple[Description, ...]) -> Schema:
    """Return the schema of one call, shared by all who ask for it: not to be changed."""
    return {"anyOf": [_call_of(tool) for tool in tools]}


def _call_of(tool: Description) -> Schema:
    return {
        "type": "object",
        "properties": {
            "tool_name": {"type": "string", "const": tool.name},
            "parameters": tool.parameters,
            "reasoning": {"type": "string", "maxLength": _REASONING_CAP},
        },
        "required": ["tool_name", "parameters", "reasoning"],
        "additionalProperties": False,
    }
