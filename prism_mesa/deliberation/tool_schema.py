"""Describe tools for an LLM with a line for the prompt and the JSON schema of a call, and check calls' parameters."""

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import FunctionType, SimpleNamespace
from typing import Annotated, Any, ClassVar, Final, Protocol, get_type_hints
from weakref import WeakKeyDictionary

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined

from prism_mesa.deliberation.text import error_text, replace_surrogates, short_repr, to_json_types
from prism_mesa.errors import ConfigError, did_you_mean

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


class _Tool(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Schema: ...


def tool_line(tool: _Tool) -> str:
    """Describe a tool in one line: its name, parameters and description, and the parameters' descriptions."""
    required = tool.parameters.get("required", ())
    names, sentences = [], [_sentence(tool.description)]
    for name, schema in tool.parameters.get("properties", {}).items():
        default = short_repr(schema["default"]) if "default" in schema else "" if name in required else "..."
        names.append(f"{name}: {type_name(schema)}" + (f" = {default}" if default else ""))
        if schema.get("description"):
            sentences.append(_sentence(f"{name}: {schema['description']}"))
    return f"- {tool.name}({', '.join(names)}): {' '.join(sentences)}"


def _sentence(text: str) -> str:
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def type_name(schema: Any) -> str:
    """Return the type of a schema in Python's notation.

    >>> type_name({"type": "array", "items": {"enum": ["up", "down"]}})
    "list['up' | 'down']"
    """
    match schema:
        case {"const": value}:
            return repr(value)
        case {"enum": values}:
            return " | ".join(map(repr, values))
        case {"anyOf": alternatives} | {"oneOf": alternatives}:
            return " | ".join(dict.fromkeys(map(type_name, alternatives)))
        case {"type": "array", "items": item} if item:
            return f"list[{type_name(item)}]"
        case {"type": "object", "properties": parts}:
            return "{" + ", ".join(f"{name}: {type_name(part)}" for name, part in parts.items()) + "}"
        case {"type": str(json_type)}:
            return _TYPE_NAMES[json_type]
    return "any"


def call_schema(tools: Iterable[_Tool]) -> Schema:
    """Return the JSON schema of a call to one of the tools."""
    return {
        "anyOf": [
            {
                "type": "object",
                "properties": {
                    "tool_name": {"type": "string", "const": tool.name},
                    "parameters": tool.parameters,
                    "reasoning": {"type": "string", "maxLength": _REASONING_CAP},
                },
                "required": ["tool_name", "parameters", "reasoning"],
                "additionalProperties": False,
            }
            for tool in tools
        ]
    }


_MAX_FAULTS: Final = 5
_NAME_CAP: Final = 60
_STRICT: Final = ConfigDict(extra="forbid", allow_inf_nan=False)
_OMITTED: Final = ("$defs", "title", "discriminator")
_NAMED_KINDS: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ARGS: Final = re.compile(r"^Args:\n((?: +.*\n?|\n)*)", re.MULTILINE)
_ENTRY: Final = re.compile(r"^( +)(\w+)(?: \(.*?\))?:(.*(?:\n\1 +.*)*)", re.MULTILINE)
"""``name: text`` or ``name (type): text``; continuation lines are indented further."""


class _Schemas(GenerateJsonSchema):
    """Generates JSON schemas, omitting defaults that JSON cannot represent and sorting sets."""

    ignored_warning_kinds: ClassVar[set[Any]] = {"skipped-choice", "non-serializable-default"}  # type: ignore[misc]

    def encode_default(self, dft: Any) -> Any:
        super().encode_default(dft)  # raises if JSON cannot represent it
        return to_json_types(dft)


@dataclass(frozen=True, eq=False)
class ToolSignature:
    """A function's name, the first paragraph of its docstring, and the schema and model of its parameters."""

    name: str
    description: str
    parameters: Schema
    model: type[BaseModel]

    def arguments(self, call: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the converted arguments of a call, and the faults, one per line."""
        arguments, faults = self._check(call)
        if arguments is None:
            return {}, faults
        fields = zip(self.model.model_fields, self.parameters["properties"], strict=True)
        return {name: getattr(arguments, field) for field, name in fields if field in arguments.model_fields_set}, ""

    def identity(self, call: Mapping[str, Any]) -> str:
        """Return a string that is the same for equivalent calls."""
        arguments, _ = self._check(call)
        return json.dumps(call if arguments is None else to_json_types(arguments), sort_keys=True, default=str)

    def _check(self, call: Mapping[str, Any]) -> tuple[BaseModel | None, str]:
        try:
            return self.model.model_validate(replace_surrogates(dict(call))), ""
        except ValidationError as error:
            return None, _fault_lines(error, self.parameters["properties"])
        except Exception as error:  # from a type's validator, or nested too deeply
            return None, f"parameters: cannot be read: {error_text(error)}"


_cache: Final[tuple[WeakKeyDictionary[FunctionType, ToolSignature], ...]] = (WeakKeyDictionary(), WeakKeyDictionary())
"""Signatures of functions, and of bound methods; an entry lives as long as its function."""


def tool_signature(function: Callable[..., Any]) -> ToolSignature:
    """Return the signature of a function or method, which is read only once, also for methods of several objects.

    Raises:
        ConfigError: If `function` is neither, or a parameter has no type or cannot be passed by name.
    """
    underlying = getattr(function, "__func__", function)
    if not isinstance(underlying, FunctionType):
        raise ConfigError(f"tools: {short_repr(function)}: must be a function or a method; wrap it in one")
    signatures = _cache[underlying is not function]
    if underlying not in signatures:
        signatures[underlying] = _read_signature(function, underlying)
    return signatures[underlying]


def _read_signature(function: Callable[..., Any], underlying: FunctionType) -> ToolSignature:
    description, descriptions = _parse_docstring(inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    for i, parameter in enumerate(inspect.signature(function).parameters.values()):
        default = PydanticUndefined if parameter.default is parameter.empty else parameter.default
        text: Any = descriptions.get(parameter.name, PydanticUndefined)
        hint = _parameter_type(parameter, underlying, f"tool {underlying.__name__}: parameter")
        # the name is an alias, because pydantic may reserve it
        fields[f"p{i}"] = (hint, Field(default, alias=parameter.name, description=text))
    model = create_model(underlying.__name__, __config__=_STRICT, **fields)
    schema = model.model_json_schema(schema_generator=_Schemas)
    parameters = {"type": "object", "properties": {}} | _inline_references(schema, schema.get("$defs", {}))
    return ToolSignature(underlying.__name__, description, parameters, model)


def _parameter_type(parameter: inspect.Parameter, underlying: FunctionType, where: str) -> Any:
    """Return a parameter's type, without evaluating the function's other annotations."""
    if parameter.kind not in _NAMED_KINDS:
        raise ConfigError(f"{where} {parameter}: cannot be passed by name; allowed: name: type [= default]")
    if parameter.annotation is parameter.empty:
        raise ConfigError(f"{where} {parameter.name}: has no type; give one that JSON can represent")
    annotated = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        hint = get_type_hints(annotated, inspect.unwrap(underlying).__globals__, include_extras=True)[parameter.name]
        TypeAdapter(hint).json_schema(schema_generator=_Schemas)
    except (NameError, TypeError, SyntaxError, AttributeError, PydanticUserError) as error:
        cause = error_text(error).splitlines()[0]
        raise ConfigError(f"{where} {parameter.name}: its type must be one that JSON can represent: {cause}") from None
    is_number = getattr(hint, "__origin__", hint) in (int, float)  # `Annotated` has an origin
    return Annotated[hint, BeforeValidator(_reject_bool)] if is_number else hint


def _reject_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("Input should be a number")
    return value


def _parse_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and the descriptions in `Args:` by parameter, each as one line."""
    section = _ARGS.search(doc)
    first = doc[: section.start() if section else None].strip().split("\n\n")[0]
    entries = _ENTRY.findall(section[1]) if section else []
    return " ".join(first.split()), {name: " ".join(words.split()) for _indent, name, words in entries}


def _inline_references(schema: Any, defs: Mapping[str, Schema], path: tuple[str, ...] = ()) -> Any:
    """Replace references with what they refer to, and drop titles; a recursive type accepts anything."""
    match schema:
        case list():
            return [_inline_references(part, defs, path) for part in schema]
        case {"$ref": str(ref), **rest}:
            name = ref.rpartition("/")[2]
            return ({} if name in path else _inline_references(defs[name], defs, (*path, name))) | rest
        case dict():
            return {key: _inline_part(key, part, defs, path) for key, part in schema.items() if key not in _OMITTED}
    return schema


def _inline_part(key: str, part: Any, defs: Mapping[str, Schema], path: tuple[str, ...]) -> Any:
    if key in ("default", "const", "enum", "examples"):
        return part
    if key == "properties":
        return {name: _inline_references(schema, defs, path) for name, schema in part.items()}
    return _inline_references(part, defs, path)


def _fault_lines(error: ValidationError, properties: Schema) -> str:
    faults = error.errors(include_url=False)
    lines = [_fault(fault, properties) for fault in faults[:_MAX_FAULTS]]
    more = len(faults) - len(lines)
    return "\n".join([*lines, f"and {more} more"] if more else lines)


def _fault(fault: Mapping[str, Any], properties: Schema) -> str:
    first, *rest = fault["loc"]
    path = " ".join(".".join(map(str, fault["loc"])).split())[:_NAME_CAP] or "''"
    match fault["type"]:
        case "extra_forbidden" | "invalid_key" if not rest:
            suggestion = did_you_mean(path, properties)
            return f"{path}: there is no such parameter; allowed: {', '.join(properties) or 'none'}.{suggestion}"
        case "missing" if not rest:
            schema = properties[first]
            allowed = ", ".join(filter(None, (type_name(schema), schema.get("description"))))
            return f"{path}: is missing; allowed: {allowed}"
        case "missing":
            return f"{path}: is missing"
    return f"{path}: {fault['msg'].removeprefix('Value error, ')}, not {short_repr(fault['input'])}"
