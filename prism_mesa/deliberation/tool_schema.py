"""Tools as an LLM sees them: a line for the prompt, the JSON schema of a call, and a check of its parameters."""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import FunctionType, SimpleNamespace
from typing import Annotated, Any, ClassVar, Final, get_type_hints
from weakref import WeakKeyDictionary

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticUndefined

from prism_mesa.deliberation.text import error_text, in_order, jsonable, mended, shown
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
    return {"anyOf": [_one_call_schema(tool) for tool in tools]}


def _one_call_schema(tool: Description) -> Schema:
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


_MOST_FAULTS: Final = 5
_NAME_CAP: Final = 60
_STRICT: Final = ConfigDict(extra="forbid", allow_inf_nan=False)
_UNTOLD: Final = ("$defs", "title", "discriminator")
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ARGS: Final = re.compile(r"^Args:\n((?: +.*\n?|\n)*)", re.MULTILINE)
_ENTRY: Final = re.compile(r"^( +)(\w+)(?: \(.*?\))?:(.*(?:\n\1 +.*)*)", re.MULTILINE)
"""``name: words`` or ``name (type): words``, which go on where lines stand further in."""


class _Schemas(GenerateJsonSchema):
    """JSON schemas without the defaults that JSON cannot hold, and with sets in order."""

    ignored_warning_kinds: ClassVar[set[Any]] = {"skipped-choice", "non-serializable-default"}  # type: ignore[misc]

    def encode_default(self, dft: Any) -> Any:
        return in_order(super().encode_default(dft), dft)


@dataclass(frozen=True, eq=False)
class ToolForm:
    """What a function says: its name, its docstring's first paragraph, and its parameters, as a schema of an object."""

    name: str
    description: str
    parameters: Schema
    model: type[BaseModel]

    def arguments(self, parameters_given: object) -> tuple[dict[str, Any], str]:
        """Return the arguments of a call that are given, and what is wrong with them, one line a fault."""
        checked, faults = self._checked(parameters_given)
        if checked is None:
            return {}, faults
        names = zip(self.model.model_fields, self.parameters["properties"], strict=True)
        return {name: getattr(checked, own) for own, name in names if own in checked.model_fields_set}, ""

    def identity(self, parameters_given: object) -> str:
        """Return a text that two calls share if they come to the same, however they are written."""
        checked, _ = self._checked(parameters_given)
        what = parameters_given if checked is None else jsonable(checked)
        return json.dumps(what, sort_keys=True, default=str)

    def _checked(self, parameters_given: object) -> tuple[BaseModel | None, str]:
        """Return the arguments of a call in their types, or None and what is wrong with them."""
        properties: Schema = self.parameters["properties"]
        if not isinstance(parameters_given, Mapping):
            keys = ", ".join(properties) or "none"
            return None, f"parameters: must be an object (its keys: {keys}), not {shown(parameters_given)}"
        try:
            return self.model.model_validate(mended(dict(parameters_given))), ""
        except ValidationError as error:
            return None, _faults(error, properties)
        except Exception as error:  # of a type's own validator, or nested too deeply
            return None, f"parameters: cannot be read: {error_text(error)}"


_forms: Final[tuple[WeakKeyDictionary[FunctionType, ToolForm], ...]] = (WeakKeyDictionary(), WeakKeyDictionary())
"""What was read so far, of functions and of bound methods; it lives as long as they do."""


def tool_form(function: Callable[..., Any]) -> ToolForm:
    """Return what a function or method says; it is read once, for a method once for all objects.

    Raises:
        ConfigError: If it is neither, or has a parameter without type, or one that cannot be given by name.
    """
    plain = getattr(function, "__func__", function)
    if not isinstance(plain, FunctionType):
        raise ConfigError(f"tools: {shown(function)}: must be a function or a method; wrap it in one")
    known = _forms[plain is not function]
    if plain not in known:
        known[plain] = _read(function, plain)
    return known[plain]


def _read(function: Callable[..., Any], plain: FunctionType) -> ToolForm:
    description, said = _parse_docstring(inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    for place, parameter in enumerate(inspect.signature(function).parameters.values()):
        default = PydanticUndefined if parameter.default is parameter.empty else parameter.default
        words: Any = said.get(parameter.name, PydanticUndefined)
        hint = _hint(parameter, plain, f"tool {plain.__name__}: parameter")
        # the name is an alias, since it may be one that pydantic uses itself
        fields[f"p{place}"] = (hint, Field(default, alias=parameter.name, description=words))
    model = create_model(plain.__name__, __config__=_STRICT, **fields)
    schema = model.model_json_schema(schema_generator=_Schemas)
    parameters = {"type": "object", "properties": {}} | _inlined(schema, schema.get("$defs", {}))
    return ToolForm(plain.__name__, description, parameters, model)


def _hint(parameter: inspect.Parameter, plain: FunctionType, where: str) -> Any:
    """Return a parameter's type; whether the others and the result have types that are known here does not matter."""
    if parameter.kind not in _BY_NAME:
        raise ConfigError(f"{where} {parameter}: cannot be given by name; allowed: name: type [= default]")
    if parameter.annotation is parameter.empty:
        raise ConfigError(f"{where} {parameter.name}: has no type; it needs one that JSON can hold")
    one = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        hint = get_type_hints(one, inspect.unwrap(plain).__globals__, include_extras=True)[parameter.name]
        TypeAdapter(hint).json_schema(schema_generator=_Schemas)
    except (NameError, TypeError, SyntaxError, AttributeError, PydanticUserError) as error:
        said = error_text(error).splitlines()[0]
        raise ConfigError(
            f"{where} {parameter.name}: its type must be one that JSON can hold, known in its module: {said}"
        ) from None
    is_number = getattr(hint, "__origin__", hint) in (int, float)  # also an annotated one
    return Annotated[hint, BeforeValidator(_no_truth)] if is_number else hint


def _no_truth(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("Input should be a number")
    return value


def _parse_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and what its `Args:` say of each parameter; each as one line."""
    section = _ARGS.search(doc)
    first = doc[: section.start() if section else None].strip().split("\n\n")[0]
    entries = _ENTRY.findall(section[1]) if section else []
    return " ".join(first.split()), {name: " ".join(words.split()) for _indent, name, words in entries}


def _inlined(schema: Any, defs: Mapping[str, Schema], path: tuple[str, ...] = ()) -> Any:
    """Return a schema without references and titles; a type within itself may there be anything."""
    match schema:
        case list():
            return [_inlined(part, defs, path) for part in schema]
        case {"$ref": str(ref), **rest}:
            name = ref.rpartition("/")[2]
            return ({} if name in path else _inlined(defs[name], defs, (*path, name))) | rest
        case dict():
            return {key: _part(key, part, defs, path) for key, part in schema.items() if key not in _UNTOLD}
    return schema


def _part(key: str, part: Any, defs: Mapping[str, Schema], path: tuple[str, ...]) -> Any:
    if key in ("default", "const", "enum", "examples"):
        return part
    if key == "properties":
        return {name: _inlined(schema, defs, path) for name, schema in part.items()}
    return _inlined(part, defs, path)


def _faults(error: ValidationError, properties: Schema) -> str:
    faults = error.errors(include_url=False)
    lines = [_fault(fault, properties) for fault in faults[:_MOST_FAULTS]]
    more = len(faults) - len(lines)
    return "\n".join([*lines, f"and {more} more"] if more else lines)


def _fault(fault: Mapping[str, Any], properties: Schema) -> str:
    first, *within = fault["loc"]
    place = " ".join(".".join(map(str, fault["loc"])).split())[:_NAME_CAP] or "''"
    match fault["type"]:
        case "extra_forbidden" | "invalid_key" if not within:
            near = did_you_mean(place, properties)
            return f"{place}: there is no such parameter; allowed: {', '.join(properties) or 'none'}.{near}"
        case "missing" if not within:
            schema = properties[first]
            allowed = ", ".join(filter(None, (type_name(schema), schema.get("description"))))
            return f"{place}: is missing; allowed: {allowed}"
        case "missing":
            return f"{place}: is missing"
    return f"{place}: {fault['msg'].removeprefix('Value error, ')}, not {shown(fault['input'])}"
