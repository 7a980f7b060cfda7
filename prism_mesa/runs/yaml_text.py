"""YAML as users write it: everything that can be wrong with it is one line, said before it costs anything."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from prism_mesa.errors import ConfigError, shortened

LARGEST: Final = 2**20
"""Bytes of a YAML file; a larger one is not read: PyYAML goes through a text letter by letter, 3 MB a second."""

DEEPEST: Final = 50
"""How many lists and groups may lie within each other."""

MOST_VALUES: Final = 50_000
"""Values and keys of a text, those that an alias repeats counted as often as they come."""

_SHOWN: Final = 60


class Loader(yaml.SafeLoader):
    """YAML in which what PyYAML would drop, run out of memory over, or stumble on is an error with its place."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._depth = self._n = 0
        self._aliased = False

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node, if it does not lie too deep and there are not too many."""
        self._aliased |= self.check_event(yaml.AliasEvent)
        self._n += 1
        deep = f"more than {DEEPEST} levels within each other" if self._depth > DEEPEST else ""
        fault = deep or (f"more than {MOST_VALUES:,} values" if self._n > MOST_VALUES else "")
        if fault:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, fault, mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def get_single_node(self) -> yaml.Node | None:
        """Return the only document, if its aliases do not make too much of it."""
        node = super().get_single_node()
        if node is not None and self._aliased:
            _Sizes().of(node)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping, if no key stands twice; PyYAML would drop the first in silence."""
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if key.value in seen:
                fault = f"{_short(key.value)} stands here twice"
                raise yaml.constructor.ConstructorError(None, None, fault, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Return the value of a node; what Python says of one that is none (30 February) becomes PyYAML's error."""
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
            kind = node.tag.rpartition(":")[2]
            why = f" ({error})" if kind == "timestamp" and isinstance(error, ValueError) else ""
            fault = f"{_short(node.value)} is no {_KINDS.get(kind, kind)}{why}"
            raise yaml.constructor.ConstructorError(None, None, fault, node.start_mark) from None

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """Return a whole number; what YAML 1.1 takes for octal or for sixties is refused: 0100 would be 64."""
        _check_decimal(node, octal=True)
        return int(super().construct_yaml_int(node))

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        """Return a number; 1:30.5, which YAML 1.1 takes for 90.5, is refused."""
        _check_decimal(node, octal=False)
        return float(super().construct_yaml_float(node))


Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
Loader.add_constructor("tag:yaml.org,2002:float", Loader.construct_yaml_float)

_LEADING_ZERO: Final = re.compile(r"[-+]?0[\d_]")


def _check_decimal(node: yaml.ScalarNode, *, octal: bool) -> None:
    text = str(node.value)
    if isinstance(node, yaml.ScalarNode) and (":" in text or (octal and _LEADING_ZERO.match(text))):
        fault = f"{_short(text)} is no number: write a text in quotes, a number without leading zeros or colons"
        raise yaml.constructor.ConstructorError(None, None, fault, node.start_mark)


_MERGE: Final = "tag:yaml.org,2002:merge"
_KINDS: Final = {"int": "whole number", "float": "number", "bool": "truth value", "timestamp": "date or time"}


class _Sizes:
    """How many values nodes come to when each alias is followed."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._open: set[int] = set()

    def of(self, node: yaml.Node) -> int:
        """Return the number of values of a node.

        Raises:
            ComposerError: If it holds itself, or more than `MOST_VALUES`.
        """
        at = id(node)
        if at in self._open:
            raise yaml.composer.ComposerError(None, None, "an alias that holds itself", node.start_mark)
        if at not in self._known:
            self._open.add(at)
            self._known[at] = 1 + sum(map(self.of, _within(node)))
            self._open.discard(at)
        if self._known[at] > MOST_VALUES:
            fault = f"aliases that make more than {MOST_VALUES:,} values of it"
            raise yaml.composer.ComposerError(None, None, fault, node.start_mark)
        return self._known[at]


def _within(node: yaml.Node) -> Iterable[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return node.value if isinstance(node, yaml.SequenceNode) else ()


def _short(value: object) -> str:
    return shortened(repr(value) if isinstance(value, str) else type(value).__name__, _SHOWN)


def parsed(text: str, loader: type[Loader] = Loader) -> Any:
    """Return what a YAML text holds.

    Raises:
        yaml.YAMLError: If it is not YAML, or holds what no value can be made of.
    """
    if len(text) > LARGEST:
        raise yaml.YAMLError(f"{len(text):,} characters; there can be {LARGEST:,}")
    try:
        return yaml.load(text, loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError:
        raise
    except Exception as error:  # PyYAML lets through whatever Python says, an escape beyond Unicode for one
        raise yaml.YAMLError(f"{type(error).__name__}: {error}") from None


def fault_of(error: yaml.YAMLError) -> str:
    """Return what is wrong in one line, without the place."""
    return shortened(str(getattr(error, "problem", None) or str(error) or type(error).__name__).splitlines()[0])


def read_yaml(
    file: Path,
    loader: type[Loader] = Loader,
    *,
    what: str = "config file",
    hint: str = ", or name no file to take the defaults",
) -> dict[str, Any]:
    """Return the keys and values of a YAML file.

    Args:
        file: The file, of at most `LARGEST` bytes.
        loader: How it is read.
        what: What it should be, for errors.
        hint: What else to do where it is empty.

    Raises:
        ConfigError: One line, if there is no such file, or it holds anything else.
    """
    try:
        values = parsed(_text_of(file, what), loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{file}:{place} is not YAML: {fault_of(error)}") from None
    if values is None:
        raise ConfigError(f"{file}: is empty; write at least one key{hint}")
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: holds a {type(values).__name__}, not keys and values")
    return values


def _text_of(file: Path, what: str) -> str:
    """Return the text of a file that is there and not too large."""
    try:
        if fault := _unfit(file, what):
            raise ConfigError(f"{file}: {fault}")
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: is not text in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None


def _unfit(file: Path, what: str) -> str:
    """Return why a file cannot be read, or an empty string."""
    if "\0" in str(file) or not file.is_file():
        missing = f"is a folder, not a {what}" if "\0" not in str(file) and file.is_dir() else f"no such {what}"
        return f"{missing} (looked in {Path.cwd()})"
    size = file.stat().st_size
    return "" if size <= LARGEST else f"{size:,} bytes are too many for a {what} (at most {LARGEST:,})"
