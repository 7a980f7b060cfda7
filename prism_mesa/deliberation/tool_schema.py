"""Describes tools for an LLM: a line for the prompt, the JSON schema of a call, and the check of its parameters."""

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

from prism_mesa.deliberation.text import error_text, jsonable, quoted_value, replace_surrogates
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
    """Describe a tool in one line: name, parameters, description, descriptions of the parameters."""
    required = tool.parameters.get("required", ())
    names, sentences = [], [_sentence(tool.description)]
    for name, schema in tool.parameters.get("properties", {}).items():
        default = quoted_value(schema["default"]) if "default" in schema else "" if name in required else "..."
        names.append(f"{name}: {type_name(schema)}" + (f" = {default}" if default else ""))
        if schema.get("description"):
            sentences.append(_sentence(f"{name}: {schema['description']}"))
    return f"- {tool.name}({', '.join(names)}): {' '.join(sentences)}"


def _sentence(text: str) -> str:
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def type_name(schema: Any) -> str:
    """Return a schema's type in Python's notation.

    >>> type_name({"type": "array", "items": {"enum": ["up", "down"]}})
    "list['up' | 'down']"
    """
    match schema:
        case {"const": value}:
            return repr(value)
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


def call_schema(tools: Iterable[_Tool]) -> Schema:
    """Return the JSON schema of one call."""
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
_OMITTED_KEYS: Final = ("$defs", "title", "discriminator")
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ARGS: Final = re.compile(r"^Args:\n((?: +.*\n?|\n)*)", re.MULTILINE)
_ENTRY: Final = re.compile(r"^( +)(\w+)(?: \(.*?\))?:(.*(?:\n\1 +.*)*)", re.MULTILINE)
"""``name: text`` or ``name (type): text``, continued on lines that are indented further."""


class _Schemas(GenerateJsonSchema):
    """Generates JSON schemas, omitting defaults that JSON cannot represent and sorting sets."""

    ignored_warning_kinds: ClassVar[set[Any]] = {"skipped-choice", "non-serializable-default"}  # type: ignore[misc]

    def encode_default(self, dft: Any) -> Any:
        super().encode_default(dft)  # raises if JSON cannot represent it
        return jsonable(dft)


@dataclass(frozen=True, eq=False)
class ToolForm:
    """A function as a tool: its name, its docstring's first paragraph, and the schema of its parameters."""

    name: str
    description: str
    parameters: Schema
    model: type[BaseModel]

    def arguments(self, call: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return the converted arguments of a call, and its faults, one per line."""
        arguments, faults = self._check(call)
        if arguments is None:
            return {}, faults
        fields = zip(self.model.model_fields, self.parameters["properties"], strict=True)
        return {name: getattr(arguments, field) for field, name in fields if field in arguments.model_fields_set}, ""

    def identity(self, call: Mapping[str, Any]) -> str:
        """Return a string that equivalent calls share."""
        arguments, _ = self._check(call)
        return json.dumps(call if arguments is None else jsonable(arguments), sort_keys=True, default=str)

    def _check(self, call: Mapping[str, Any]) -> tuple[BaseModel | None, str]:
        try:
            return self.model.model_validate(replace_surrogates(dict(call))), ""
        except ValidationError as error:
            return None, _faults(error, self.parameters["properties"])
        except Exception as error:  # from a type's validator, or nested too deeply
            return None, f"parameters: cannot be read: {error_text(error)}"


_forms: Final[tuple[WeakKeyDictionary[FunctionType, ToolForm], ...]] = (WeakKeyDictionary(), WeakKeyDictionary())
"""The forms of functions and of bound methods; an entry lives as long as its function."""


def tool_form(function: Callable[..., Any]) -> ToolForm:
    """Return the form of a function or method; it is read once, and all objects share the form of a method.

    Raises:
        ConfigError: If `function` is something else, or a parameter has no type or cannot be passed by name.
    """
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, FunctionType):
        raise ConfigError(f"tools: {quoted_value(function)}: must be a function or a method; wrap it in one")
    forms = _forms[plain is not function]
    if plain not in forms:
        forms[plain] = _read(function, plain)
    return forms[plain]


def _read(function: Callable[..., Any], plain: FunctionType) -> ToolForm:
    description, descriptions = _parse_docstring(inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    for i, parameter in enumerate(inspect.signature(function).parameters.values()):
        default = PydanticUndefined if parameter.default is parameter.empty else parameter.default
        text: Any = descriptions.get(parameter.name, PydanticUndefined)
        hint = _hint(parameter, plain, f"tool {plain.__name__}: parameter")
        # the name is an alias, because pydantic may reserve it
        fields[f"p{i}"] = (hint, Field(default, alias=parameter.name, description=text))
    model = create_model(plain.__name__, __config__=_STRICT, **fields)
    schema = model.model_json_schema(schema_generator=_Schemas)
    parameters = {"type": "object", "properties": {}} | _inline(schema, schema.get("$defs", {}))
    return ToolForm(plain.__name__, description, parameters, model)


def _hint(parameter: inspect.Parameter, plain: FunctionType, where: str) -> Any:
    """Return a parameter's type, without evaluating the function's other annotations."""
    if parameter.kind not in _BY_NAME:
        raise ConfigError(f"{where} {parameter}: cannot be passed by name; allowed: name: type [= default]")
    if parameter.annotation is parameter.empty:
        raise ConfigError(f"{where} {parameter.name}: has no type; give one that JSON can represent")
    annotated = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        hint = get_type_hints(annotated, inspect.unwrap(plain).__globals__, include_extras=True)[parameter.name]
        TypeAdapter(hint).json_schema(schema_generator=_Schemas)
    except (NameError, TypeError, SyntaxError, AttributeError, PydanticUserError) as error:
        cause = error_text(error).splitlines()[0]
        raise ConfigError(f"{where} {parameter.name}: its type must be one that JSON can represent: {cause}") from None
    is_number = getattr(hint, "__origin__", hint) in (int, float)  # `Annotated` has an origin
    return Annotated[hint, BeforeValidator(_not_bool)] if is_number else hint


def _not_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("Input should be a number")
    return value


def _parse_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring and its `Args:` by parameter, each as one line."""
    section = _ARGS.search(doc)
    first = doc[: section.start() if section else None].strip().split("\n\n")[0]
    entries = _ENTRY.findall(section[1]) if section else []
    return " ".join(first.split()), {name: " ".join(words.split()) for _indent, name, words in entries}


def _inline(schema: Any, defs: Mapping[str, Schema], path: tuple[str, ...] = ()) -> Any:
    """Return a schema without references and titles; a recursive type accepts anything."""
    match schema:
        case list():
            return [_inline(part, defs, path) for part in schema]
        case {"$ref": str(ref), **rest}:
            name = ref.rpartition("/")[2]
            return ({} if name in path else _inline(defs[name], defs, (*path, name))) | rest
        case dict():
            return {key: _part(key, part, defs, path) for key, part in schema.items() if key not in _OMITTED_KEYS}
    return schema


def _part(key: str, part: Any, defs: Mapping[str, Schema], path: tuple[str, ...]) -> Any:
    if key in ("default", "const", "enum", "examples"):
        return part
    if key == "properties":
        return {name: _inline(schema, defs, path) for name, schema in part.items()}
    return _inline(part, defs, path)


def _faults(error: ValidationError, properties: Schema) -> str:
    faults = error.errors(include_url=False)
    lines = [_fault(fault, properties) for fault in faults[:_MAX_FAULTS]]
    more = len(faults) - len(lines)
    return "\n".join([*lines, f"and {more} more"] if more else lines)


def _fault(fault: Mapping[str, Any], properties: Schema) -> str:
    first, *rest = fault["loc"]
    path = " ".join(".".join(map(str, fault["loc"])).split())[:_NAME_CAP] or "''"
    match fault["type"]:
        case "extra_forbidden" | "invalid_key" if not rest:
            near = did_you_mean(path, properties)
            return f"{path}: there is no such parameter; allowed: {', '.join(properties) or 'none'}.{near}"
        case "missing" if not rest:
            schema = properties[first]
            allowed = ", ".join(filter(None, (type_name(schema), schema.get("description"))))
            return f"{path}: is missing; allowed: {allowed}"
        case "missing":
            return f"{path}: is missing"
    return f"{path}: {fault['msg'].removeprefix('Value error, ')}, not {quoted_value(fault['input'])}"
