"""Read YAML with limits on size and depth, and errors in one line."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from prism_mesa.errors import ConfigError, shorten

MAX_BYTES: Final = 2**20
"""Maximum size of a YAML file in bytes; PyYAML reads 3 MB a second."""

MAX_DEPTH: Final = 50
"""Maximum nesting of lists and groups."""

MAX_VALUES: Final = 50_000
"""Maximum number of values and keys, including those that aliases repeat."""

_MAX_CHARS: Final = 60


class Loader(yaml.SafeLoader):
    """A YAML loader with limits; its errors for repeated keys and impossible values name the position."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._depth = self._n_nodes = 0
        self._aliased = False

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node; raises an error at too many levels or nodes."""
        self._aliased |= self.check_event(yaml.AliasEvent)
        self._n_nodes += 1
        depth_fault = f"more than {MAX_DEPTH} nested levels" if self._depth > MAX_DEPTH else ""
        fault = depth_fault or (f"more than {MAX_VALUES:,} values" if self._n_nodes > MAX_VALUES else "")
        if fault:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, fault, mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def get_single_node(self) -> yaml.Node | None:
        """Return the only document; raises an error if aliases expand to too many values."""
        node = super().get_single_node()
        if node is not None and self._aliased:
            _check_aliases(node, {})
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; raises an error for a repeated key, where PyYAML drops the first value."""
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if key.value in keys:
                fault = f"{_short(key.value)} appears here twice"
                raise yaml.constructor.ConstructorError(None, None, fault, key.start_mark)
            keys.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node; impossible values (30 February) raise a YAML error, not Python's."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
            kind = node.tag.rpartition(":")[2]
            why = f" ({error})" if kind == "timestamp" and isinstance(error, ValueError) else ""
            fault = f"{_short(node.value)} is not a {_KINDS.get(kind, kind)}{why}"
            raise yaml.constructor.ConstructorError(None, None, fault, node.start_mark) from None

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """Return a whole number; raises an error for octal and sexagesimal numbers (in YAML 1.1, 0100 is 64)."""
        _check_decimal(node, octal=True)
        return int(super().construct_yaml_int(node))

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        """Return a number; raises an error for sexagesimal numbers (in YAML 1.1, 1:30.5 is 90.5)."""
        _check_decimal(node, octal=False)
        return float(super().construct_yaml_float(node))


Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
Loader.add_constructor("tag:yaml.org,2002:float", Loader.construct_yaml_float)

_LEADING_ZERO: Final = re.compile(r"[-+]?0[\d_]")


def _check_decimal(node: yaml.ScalarNode, *, octal: bool) -> None:
    text = str(node.value)
    if isinstance(node, yaml.ScalarNode) and (":" in text or (octal and _LEADING_ZERO.match(text))):
        fault = f"{_short(text)} is not a number: write text in quotes, and numbers without leading zeros or colons"
        raise yaml.constructor.ConstructorError(None, None, fault, node.start_mark)


_MERGE: Final = "tag:yaml.org,2002:merge"
_KINDS: Final = {"int": "whole number", "float": "number", "bool": "truth value", "timestamp": "date or time"}


def _check_aliases(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return the number of values of a node, following aliases; raises an error for cycles, or too many values.

    `sizes` has these numbers by node id; 0 while a node is being counted.
    """
    if id(node) not in sizes:
        sizes[id(node)] = 0
        sizes[id(node)] = 1 + sum(_check_aliases(part, sizes) for part in _child_nodes(node))
    size = sizes[id(node)]
    if not 0 < size <= MAX_VALUES:
        fault = f"aliases that make more than {MAX_VALUES:,} values" if size else "an alias that contains itself"
        raise yaml.composer.ComposerError(None, None, fault, node.start_mark)
    return size


def _child_nodes(node: yaml.Node) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else ()


def _short(value: object) -> str:
    return shorten(repr(value) if isinstance(value, str) else type(value).__name__, _MAX_CHARS)


def parse_yaml(text: str, loader: type[Loader] = Loader) -> Any:
    """Return the value of a YAML text; raises `yaml.YAMLError` if the text is not valid."""
    if len(text) > MAX_BYTES:
        raise yaml.YAMLError(f"{len(text):,} characters; at most {MAX_BYTES:,} are allowed")
    try:
        return yaml.load(text, loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError:
        raise
    except Exception as error:  # PyYAML does not catch Python's errors, as for an escape beyond Unicode
        raise yaml.YAMLError(f"{type(error).__name__}: {error}") from None


def fault_text(error: yaml.YAMLError) -> str:
    """Return an error in one line, without its position."""
    return shorten(str(getattr(error, "problem", None) or str(error) or type(error).__name__).splitlines()[0])


def read_yaml(
    file: Path,
    loader: type[Loader] = Loader,
    *,
    kind: str = "config file",
    hint: str = ", or name no file to use the defaults",
) -> dict[str, Any]:
    """Return the keys and values of a YAML file of at most `MAX_BYTES` bytes.

    `kind` is the kind of file and `hint` advice for an empty file, both for errors. Raises ConfigError if the file is
    missing, or does not hold keys and values.
    """
    try:
        values = parse_yaml(_read_text(file, kind), loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{file}:{line} is not YAML: {fault_text(error)}") from None
    if values is None:
        raise ConfigError(f"{file} is empty; write at least one key{hint}")
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: holds a {type(values).__name__}, not keys and values")
    return values


def _read_text(file: Path, kind: str) -> str:
    try:
        if "\0" in str(file) or not file.is_file():
            missing = f"is a folder, not a {kind}" if "\0" not in str(file) and file.is_dir() else f"no such {kind}"
            raise ConfigError(f"{file}: {missing} (looked in {Path.cwd()})")
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise ConfigError(f"{file}: {size:,} bytes are too many for a {kind} (at most {MAX_BYTES:,})")
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not text in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
