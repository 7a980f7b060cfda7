"""Tools that an LLM may call: functions under a name, with a description, a schema, and a guarded way to run them.

It knows no domain and keeps no state of one: tools live with what they read or change, and what goes wrong in one of
them is told as text, never raised.

>>> registry = ToolRegistry()
>>> @registry.tool
... def reply(post: int, text: str, loud: bool = False) -> str:
...     '''Reply to a post.
...
...     Args:
...         post: its number.
...         text: what you say.
...     '''
...     return f"replied to {post}"
>>> print(registry.describe())
- reply(post: int, text: str, loud: bool = False): Reply to a post. post: its number. text: what you say.
>>> registry.execute("reply", {"post": "3", "text": "No."})
ToolResult(ok=True, text='replied to 3', reason='')
>>> print(registry.execute("reply", {"post": "third"}).text)
post: Input should be a valid integer, unable to parse string as an integer, not 'third'
text: is missing; allowed: str, what you say.
"""

import asyncio
import contextvars
import inspect
import keyword
import re
import reprlib
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import EllipsisType, FunctionType, MethodType, SimpleNamespace
from typing import Any, ClassVar, Final, get_type_hints, overload
from weakref import WeakKeyDictionary

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticUndefined, to_json, to_jsonable_python

from prism_mesa.errors import ConfigError, PrismError, did_you_mean

type Schema = dict[str, Any]
type Function = Callable[..., Any]

TIMEOUT_S: Final = 10.0
RESULT_CAP: Final = 1000
LEAST_CAP: Final = 80
"""A result's cap may not be lower: the note on what was cut takes part of it."""

_GRACE_S: Final = 0.1
"""How much longer than its time-out a coroutine is waited for: it ends itself, if it does not block its loop."""
_REASONING_CAP: Final = 120
_MOST_FAULTS: Final = 5
_NAME_CAP: Final = 60
_EMPTY: Final = inspect.Parameter.empty
_ENTRY: Final = re.compile(r"^([ \t]+)(\w+)(?:[ ]*\([^)\n]*\))?:(.*(?:\n\1[ \t]+.*|\n[ \t]*(?=\n))*)", re.MULTILINE)
"""``name: words`` or ``name (type): words``, which go on where lines stand further in."""
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 60


class ToolResult(BaseModel):
    """What came of a call.

    Attributes:
        ok: Whether the tool ran and returned.
        text: What the LLM reads: the result, or what is wrong; at most the registry's `result_cap` characters.
        reason: Empty if `ok`, else `unknown-tool`, `bad-parameters`, `timeout`, or the class of the exception.
    """

    model_config = ConfigDict(frozen=True)

    ok: bool
    text: str
    reason: str = ""


@dataclass(frozen=True)
class Tool:
    """A function that an LLM may call.

    Attributes:
        name: What it is called by; a Python identifier.
        description: One line for prompts.
        parameters: JSON schema of an object. What a call gives is checked against the function's own type hints.
        timeout_s: After how many seconds it is given up. A thread cannot be ended: a tool that was given up may still
            do what it does. One that changes something should have None, and then runs in the caller's thread.
    """

    name: str
    description: str
    parameters: Schema = field(hash=False)
    function: Function
    timeout_s: float | None = TIMEOUT_S

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier() or keyword.iskeyword(self.name):
            raise ConfigError(f"tool {_shown(self.name)}: name: must be a Python identifier, such as 'read_feed'")
        _check_timeout(self.timeout_s, f"tool {self.name}")

    @classmethod
    def of(cls, function: Function, *, name: str | None = None, timeout_s: float | None = TIMEOUT_S) -> "Tool":
        """Return a tool of what a function's signature and docstring say.

        The first paragraph of the docstring is the description, and its `Args:` (Google style) describe the
        parameters. A method's object stays with it, and is no parameter.

        Raises:
            ConfigError: If there is no docstring, or a parameter without type, or one that cannot be given by name, or
                a name that is none, or a time-out that is not above 0.
        """
        form = _form_of(function)
        if not form.description:
            raise ConfigError(
                f"tool {form.name}: docstring: there is none; its first paragraph is what the LLM is told"
            )
        return cls(name or form.name, form.description, form.parameters, function, timeout_s)


class ToolRegistry:
    """The tools of one caller, in the order they were added.

    What signatures and docstrings say is read once for each function, so that a registry of bound methods may be
    made anew for each agent and turn.

    Args:
        tools: Functions, methods, or tools.
        timeout_s: After how many seconds a tool is given up that says nothing else (see `Tool`); None for never.
        result_cap: Characters that no result's text exceeds; at least 80.

    Raises:
        ConfigError: If a tool is none (see `Tool.of`), a name is taken, or a number is not allowed.
    """

    def __init__(
        self,
        tools: Iterable[Function | Tool] = (),
        *,
        timeout_s: float | None = TIMEOUT_S,
        result_cap: int = RESULT_CAP,
    ) -> None:
        _check_timeout(timeout_s, "tools")
        if result_cap < LEAST_CAP:
            raise ConfigError(f"tools: result_cap: must be at least {LEAST_CAP}, not {result_cap}")
        self.timeout_s = timeout_s
        self.result_cap = result_cap
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def add(
        self,
        function: Function | Tool,
        *,
        name: str | None = None,
        timeout_s: float | EllipsisType | None = ...,
    ) -> Tool:
        """Add a tool and return it.

        Args:
            function: A function or method, plain or async; a `Tool` is taken as it is.
            name: What the LLM calls it by; by default the function's own name.
            timeout_s: As in `Tool`; by default the registry's.

        Raises:
            ConfigError: If it cannot be one (see `Tool.of`), or its name is taken.
        """
        if isinstance(function, Tool):
            tool = function
        else:
            tool = Tool.of(function, name=name, timeout_s=self.timeout_s if timeout_s is ... else timeout_s)
        if tool.name in self._tools:
            raise ConfigError(f"tool {tool.name}: name: is taken; each tool needs one of its own (name=...)")
        self._tools[tool.name] = tool
        return tool

    @overload
    def tool[F: Function](self, function: F) -> F: ...
    @overload
    def tool[F: Function](
        self, *, name: str | None = None, timeout_s: float | EllipsisType | None = ...
    ) -> Callable[[F], F]: ...
    def tool(
        self,
        function: Function | None = None,
        *,
        name: str | None = None,
        timeout_s: float | EllipsisType | None = ...,
    ) -> Any:
        """Add the decorated function, which stays as it is; with and without arguments, those of `add`."""

        def added[F: Function](function: F) -> F:
            self.add(function, name=name, timeout_s=timeout_s)
            return function

        return added if function is None else added(function)

    @property
    def names(self) -> tuple[str, ...]:
        """What the tools are called by."""
        return tuple(self._tools)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._tools

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def describe(self) -> str:
        """Return the tools for a prompt, one line each: name, parameters, what it does, what the parameters are."""
        return _described(self._said())

    @property
    def call_schema(self) -> Schema | None:
        """JSON schema of one call: `tool_name`, its `parameters` and `reasoning`, in this order; None without tools.

        It has no references, so that a grammar can be made of it. It is shared: not to be changed.
        """
        return _call_schema(self._said()) if self._tools else None

    def _said(self) -> tuple["_Said", ...]:
        return tuple(_Said(tool.name, tool.description, tool.parameters) for tool in self)

    def execute(self, name: str, parameters: Mapping[str, Any]) -> ToolResult:
        """Run a tool and return what came of it; nothing that goes wrong is raised, but an interrupt or exit.

        A tool with a time-out runs in a thread of its own and is given up after that time. A thread cannot be ended,
        so that it may still do what it does: a tool that changes something should be given `timeout_s=None`, and
        then runs in the caller's thread. Coroutines run in a thread and a loop of their own, and do end.

        Args:
            name: Of the tool.
            parameters: As an LLM gave them, checked here; if one is not allowed, nothing is run.
        """
        try:
            tool = self._tools.get(name) if isinstance(name, str) else None
            if tool is None:
                return self._failed("unknown-tool", self._no_tool(name))
            form = _form_of(tool.function)
            arguments, faults = form.arguments(parameters)
            if faults:
                return self._failed("bad-parameters", faults)
            return ToolResult(ok=True, text=_capped(_run(tool, arguments), self.result_cap))
        except (KeyboardInterrupt, SystemExit):
            raise
        except _GivenUpError as error:
            return self._failed("timeout", str(error))
        except BaseException as error:
            return self._failed(type(error).__name__, _error_told(error))

    def _failed(self, reason: str, text: str) -> ToolResult:
        return ToolResult(ok=False, text=_capped(text, self.result_cap), reason=reason)

    def _no_tool(self, name: object) -> str:
        near = did_you_mean(name[:_NAME_CAP], self._tools) if isinstance(name, str) else ""
        return f"There is no tool {_shown(name)}.{near} The tools are: {', '.join(self._tools) or 'none'}."


def _check_timeout(timeout_s: object, where: str) -> None:
    if timeout_s is None:
        return
    is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
    if not is_number or not 0 < timeout_s <= threading.TIMEOUT_MAX:  # type: ignore[operator]
        raise ConfigError(f"{where}: timeout_s: must be a number of seconds above 0, or None, not {_shown(timeout_s)}")


# What a function says


class _Arguments(BaseModel):
    """The parameters of a call, checked. A field's alias is the parameter's name, which may be any."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, protected_namespaces=())

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_no_number(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, bool) and cls.model_fields[info.field_name or ""].annotation in (int, float):
            raise ValueError("Input should be a number")
        return value


class _Schemas(GenerateJsonSchema):
    """JSON schemas without the defaults that JSON cannot hold."""

    ignored_warning_kinds: ClassVar[set[JsonSchemaWarningKind]] = {  # type: ignore[misc]
        "skipped-choice",
        "non-serializable-default",
    }


@dataclass(frozen=True, eq=False)
class _Form:
    """What a function's signature and docstring say."""

    name: str
    description: str
    parameters: Schema
    model: type[_Arguments]

    def arguments(self, given: object) -> tuple[dict[str, Any], str]:
        """Return the arguments of a call, and what is wrong with them, one line a fault."""
        properties: Schema = self.parameters["properties"]
        if not isinstance(given, Mapping):
            keys = ", ".join(properties) or "none"
            return {}, f"parameters: must be an object (its keys: {keys}), not {_shown(given)}"
        try:
            checked = self.model.model_validate(_mended(dict(given)))
        except ValidationError as error:
            return {}, _faults(error, properties)
        except Exception as error:  # of a type's own validator, or nested too deeply
            return {}, f"parameters: cannot be read: {_error_told(error)}"
        fields = type(checked).model_fields
        return {str(fields[name].alias): getattr(checked, name) for name in checked.model_fields_set}, ""


_forms: Final[tuple[WeakKeyDictionary[FunctionType, _Form], ...]] = (WeakKeyDictionary(), WeakKeyDictionary())
"""What was read so far, of functions and of bound methods; it lives as long as they do."""


def _form_of(function: Function) -> _Form:
    is_bound = isinstance(function, MethodType)
    plain = function.__func__ if isinstance(function, MethodType) else function
    if not isinstance(plain, FunctionType):
        raise ConfigError(f"tools: {_shown(function)}: must be a function or a method; wrap it in one")
    known = _forms[is_bound]
    form = known.get(plain)
    if form is None:
        form = known[plain] = _read(function, plain)
    return form


def _read(function: Function, plain: FunctionType) -> _Form:
    where = f"tool {plain.__name__}"
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind not in _BY_NAME:
            raise ConfigError(
                f"{where}: parameter {parameter}: cannot be given by name; allowed: name: type [= default]"
            )
        if parameter.annotation is _EMPTY:
            raise ConfigError(f"{where}: parameter {parameter.name}: has no type; it needs one that JSON can hold")
    description, said = _doc_of(inspect.getdoc(function) or "")
    fields = {
        f"p{place}": (_hint(parameter, plain, where), _field(parameter, said.get(parameter.name, "")))
        for place, parameter in enumerate(parameters)
    }
    model = create_model(plain.__name__, __base__=_Arguments, **fields)  # type: ignore[call-overload]
    full = model.model_json_schema(schema_generator=_Schemas)
    schema = {"type": "object", "properties": {}} | _inlined(full, full.get("$defs", {}))
    return _Form(plain.__name__, description, schema, model)


def _hint(parameter: inspect.Parameter, plain: FunctionType, where: str) -> Any:
    """Return a parameter's type; whether the others and the result have types that are known here does not matter."""
    one = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        scope = inspect.unwrap(plain).__globals__
        hint = get_type_hints(one, scope, include_extras=True)[parameter.name]
        TypeAdapter(hint).json_schema(schema_generator=_Schemas)
    except (NameError, TypeError, SyntaxError, AttributeError, PydanticUserError) as error:
        told = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ConfigError(
            f"{where}: parameter {parameter.name}: its type must be one that JSON can hold, known in its module: {told}"
        ) from None
    return hint


def _field(parameter: inspect.Parameter, description: str) -> FieldInfo:
    default = PydanticUndefined if parameter.default is _EMPTY else parameter.default
    said = {"description": description} if description else {}
    info: FieldInfo = Field(default, alias=parameter.name, **said)  # type: ignore[call-overload]
    return info


def _doc_of(doc: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and what its `Args:` say of each parameter; each as one line."""
    section = re.search(r"^Arg(?:ument)?s:[ ]*\n((?:[ \t]+\S.*\n?|[ \t]*\n)*)", doc, re.MULTILINE)
    first = doc[: section.start() if section else None].strip().split("\n\n")[0]
    entries = _ENTRY.findall(section[1]) if section else []
    return " ".join(first.split()), {name: " ".join(words.split()) for _indent, name, words in entries}


def _inlined(schema: Any, defs: Mapping[str, Schema], path: tuple[str, ...] = ()) -> Any:
    """Return a schema without references and titles; a type within itself may there be anything."""
    if isinstance(schema, list):
        return [_inlined(part, defs, path) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        here = {} if name in path else _inlined(defs.get(name, {}), defs, (*path, name))
        return here | _inlined({key: value for key, value in schema.items() if key != "$ref"}, defs, path)
    inlined = {}
    for key, value in schema.items():
        if key in ("properties", "patternProperties"):
            inlined[key] = {name: _inlined(part, defs, path) for name, part in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            inlined[key] = value
        elif key not in ("$defs", "title", "discriminator"):
            inlined[key] = _inlined(value, defs, path)
    return inlined


# What an LLM is told


@dataclass(frozen=True)
class _Said:
    """What a prompt and a grammar hold of a tool: the same for all objects whose method it is."""

    name: str
    description: str
    parameters: Schema = field(hash=False)


@lru_cache(maxsize=256)
def _described(tools: tuple[_Said, ...]) -> str:
    return "\n".join(map(_line, tools))


def _line(tool: _Said) -> str:
    properties: Schema = tool.parameters.get("properties", {})
    needed = tool.parameters.get("required", ())
    names, told = [], [_sentence(tool.description)]
    for name, schema in properties.items():
        default = f" = {_shown(schema['default'])}" if "default" in schema else ""
        names.append(f"{name}: {_type_name(schema)}{default or ('' if name in needed else ' = ...')}")
        if schema.get("description"):
            told.append(_sentence(f"{name}: {schema['description']}"))
    return f"- {tool.name}({', '.join(names)}): {' '.join(told)}"


def _sentence(text: str) -> str:
    line = " ".join(text.split())
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def _type_name(schema: Any) -> str:
    """Return what a schema allows, as Python writes types.

    >>> _type_name({"type": "array", "items": {"enum": ["up", "down"]}})
    "list['up' | 'down']"
    """
    match schema:
        case {"const": one}:
            return repr(one)
        case {"enum": values}:
            return " | ".join(map(repr, values))
        case {"anyOf": kinds} | {"oneOf": kinds}:
            return " | ".join(dict.fromkeys(map(_type_name, kinds)))
        case {"type": "array", "items": item} if item:
            return f"list[{_type_name(item)}]"
        case {"type": "object", "properties": parts}:
            return "{" + ", ".join(f"{name}: {_type_name(part)}" for name, part in parts.items()) + "}"
        case {"type": str(kind)}:
            return _TYPE_NAMES.get(kind, kind)
    return "any"


_TYPE_NAMES: Final = {
    "integer": "int",
    "number": "float",
    "string": "str",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}


@lru_cache(maxsize=256)
def _call_schema(tools: tuple[_Said, ...]) -> Schema:
    calls = [
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
    return {"anyOf": calls}


def _faults(error: ValidationError, properties: Schema) -> str:
    faults = error.errors(include_url=False)
    lines = [_fault_told(fault, properties) for fault in faults[:_MOST_FAULTS]]
    more = len(faults) - len(lines)
    return "\n".join([*lines, f"and {more} more"] if more else lines)


def _fault_told(fault: Mapping[str, Any], properties: Schema) -> str:
    place = " ".join(".".join(str(part)[:_NAME_CAP] for part in fault["loc"]).split())[:_NAME_CAP] or "parameters"
    first = fault["loc"][0] if fault["loc"] else ""
    match fault["type"]:
        case "extra_forbidden" | "invalid_key" if len(fault["loc"]) == 1:
            near = did_you_mean(place, properties)
            return f"{place}: there is no such parameter; allowed: {', '.join(properties) or 'none'}.{near}"
        case "missing" if len(fault["loc"]) == 1:
            schema = properties[first]
            allowed = ", ".join(filter(None, (_type_name(schema), schema.get("description"))))
            return f"{place}: is missing; allowed: {allowed}"
        case "missing":
            return f"{place}: is missing"
    said = str(fault["ctx"]["error"]) if fault["type"] == "value_error" else fault["msg"]
    return f"{place}: {said}, not {_shown(fault['input'])}"


def _told(value: object) -> str:
    """Return what a tool has returned, as text: as it is, or as JSON."""
    if value is None:
        return "done"
    if isinstance(value, str):
        return value
    try:
        plain = _mended(to_jsonable_python(value, by_alias=True, fallback=_plainly))
        return to_json(plain, inf_nan_mode="strings").decode()
    except Exception:  # circular, too deep, a number too long, a text that is none: the tool has run all the same
        return _shown(value)


def _plainly(value: Any) -> Any:
    return value.tolist() if callable(getattr(value, "tolist", None)) else str(value)


def _error_told(error: BaseException) -> str:
    name = type(error).__name__
    try:
        message = str(error)
    except Exception:
        message = ""
    if isinstance(error, PrismError):
        return message or name
    return f"{name}: {message}" if message else name


def _shown(value: object) -> str:
    """Return `value` as Python writes it, cut."""
    try:
        return _repr.repr(value)
    except Exception:
        return f"something of type {type(value).__name__}"


def _capped(text: str, cap: int) -> str:
    """Return `text` with at most `cap` characters, the note on what was cut among them, and none that is half a pair.

    >>> _capped("x" * 100, 30)
    'xxxxxxxx… [92 characters cut]'
    """
    if len(text) > cap:
        room = cap - len(_cut_note(len(text)))
        text = text[:room] + _cut_note(len(text) - room)
    return str(_mended(text))


def _mended(value: Any) -> Any:
    """Return `value` with a question mark for each half of a surrogate pair, which no file and no prompt can hold."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_mended(key): _mended(part) for key, part in value.items()}
    return [_mended(part) for part in value] if isinstance(value, list) else value


def _cut_note(cut: int) -> str:
    return f"… [{cut} characters cut]"


# Running


class _GivenUpError(Exception):
    """A tool took too long."""


def _run(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return what a tool returns, as text, within its time.

    Raises:
        _GivenUpError: If there is no result in time.
    """
    limit = tool.timeout_s

    def call() -> Any:
        value = tool.function(**arguments)
        return value if inspect.iscoroutine(value) else _told(value)

    in_place = limit is None or inspect.iscoroutinefunction(tool.function)
    said = call() if in_place else _in_thread(call, limit, limit)
    if inspect.iscoroutine(said):
        work = _limited(said, limit)
        said = _in_thread(lambda: asyncio.run(work), None if limit is None else limit + _GRACE_S, limit)
    return str(said)


async def _limited(work: Coroutine[Any, Any, Any], limit_s: float | None) -> str:
    timer = asyncio.timeout(limit_s)
    try:
        async with timer:
            return _told(await work)
    except TimeoutError:
        if timer.expired():
            raise _too_long(limit_s) from None
        raise


def _in_thread(work: Callable[[], Any], wait_s: float | None, limit_s: float | None) -> Any:
    """Return what `work` returns, done in a daemon thread and waited for; what it raises is raised here."""
    ended: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        try:
            ended.append((work(), None))
        except BaseException as error:
            ended.append((None, error))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run,), name="prism-tool", daemon=True)
    thread.start()
    thread.join(wait_s)
    if not ended:
        raise _too_long(limit_s)
    value, error = ended[0]
    if error is not None:
        raise error
    return value


def _too_long(limit_s: float | None) -> _GivenUpError:
    return _GivenUpError(f"no result within {limit_s:g} s; it was given up")
