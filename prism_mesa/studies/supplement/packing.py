"""The contents of an archive, and a cleaner that removes secrets and this machine's paths."""

import html
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final

import yaml

from prism_mesa.errors import DataError, redact_credentials
from prism_mesa.studies.supplement.zip_files import Content, open_content

REMOVED: Final = "[removed]"  # replaces a secret, or the folders of a path
CREDENTIAL: Final = "a key or password"
_NAMED_SECRET: Final = re.compile(r"key|token|secret|passw(?:or)?d|pwd|credential", re.IGNORECASE)
_MIN_SECRET: Final = 8  # characters of a secret; shorter values such as ``KEYBOARD=us`` occur in any text
_KEYS: Final = re.compile(
    r"\b(?:sk-[\w-]{16,}|hf_\w{20,}|gh[opsu]_\w{20,}|github_pat_\w{20,}|AKIA[0-9A-Z]{16}|xox[abprs]-[\w-]{10,}"
    r"|AIza[\w-]{30,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]{0,8000}?-----END [A-Z ]*PRIVATE KEY-----)?"
)
"""Patterns of the keys of well-known services."""
_PATH: Final = re.compile(
    r"(?<![\w/.~+\]-])(?:file://)?(?:[A-Za-z]:[\\/]|~?/)(?:[^\s/\\'\",;:()\[\]{}<>|]+[\\/])+[^\s/\\'\",;:()\[\]{}<>|]*"
)
"""An absolute path with at least two names."""
_QUOTED: Final = re.compile(r"""(['"])((?:[A-Za-z]:[\\/]|/)[^'"\n]+)\1""")  # perhaps a path with spaces
_HOME: Final = re.compile(r"(?:/home|/Users|[A-Za-z]:\\Users)[\\/][^\s/\\'\"<>:;,)]+")


class Cleaner:
    """Removes secrets and this machine's paths from texts and values.

    Known paths are the home and working directories, the folders of temporary files and of Python, `folders`, and all
    paths in cleaned values. Secrets are values of `environment` variables with a name such as ``API_KEY``, and
    `hidden_words`, such as a server's address.
    """

    def __init__(self, folders: Iterable[str | Path] = (), environment: Mapping[str, str] = os.environ) -> None:
        home, working = os.path.expanduser("~"), os.getcwd()
        known_paths = [home, working, tempfile.gettempdir(), sys.prefix, *map(str, folders)]
        absolute_paths = map(_strip_slashes, filter(_is_absolute, known_paths))
        self._paths = {path for path in absolute_paths if len(path) > 1}
        self._forbidden_paths = sorted(set(filter(_is_deep, map(_strip_slashes, (home, working, *folders)))))
        self._path_names: dict[str, str] = {}
        self._value_names: dict[str, str] = {}
        self.hidden_words: set[str] = set()
        secrets = {
            value
            for name, value in environment.items()
            if _NAMED_SECRET.search(name) and len(value) >= _MIN_SECRET and not _is_absolute(value)
        }
        self._secrets = sorted(secrets, key=len, reverse=True)

    def replace_path(self, path: str | Path, name: str) -> None:
        """Replace a path with a name from now on: absolute paths anywhere, relative paths only as whole values."""
        (self._path_names if _is_deep(str(path)) else self._value_names)[_strip_slashes(path)] = name

    def clean_text(self, text: str) -> str:
        """Return `text` without known paths and secrets."""
        text = _replace_paths(_replace_paths(text, self._path_names), dict.fromkeys(self._paths, REMOVED))
        return self._remove_secrets(_HOME.sub(REMOVED, text))

    def clean_value(self, value: Any) -> Any:
        """Return JSON-like values without secrets, and with only the last names of paths; remember these paths."""
        if isinstance(value, Mapping):
            return {str(key): self.clean_value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.clean_value(item) for item in value]
        if not isinstance(value, str):
            return value
        if value and _strip_slashes(value) in self._value_names:
            return self._value_names[_strip_slashes(value)]
        if _strip_slashes(value) in self._path_names or (_is_deep(value) and "\n" not in value):
            return self._last_name(value)
        text = _replace_paths(value, self._path_names)
        text = _QUOTED.sub(lambda m: f"{m[1]}{self._last_name(m[2])}{m[1]}" if _is_deep(m[2]) else m[0], text)
        return self.clean_text(_PATH.sub(lambda match: self._last_name(match[0]), text))

    def find_leak(self, text: str) -> str:
        """Return the kind of secret or path that `text` contains; empty if it contains none."""
        for kind, words in self.forbidden.items():
            if any(form in text for word in words for form in _forms(word)):
                return kind
        return CREDENTIAL if _KEYS.search(text) else ""

    @property
    def forbidden(self) -> dict[str, list[str]]:
        """Kind -> words that no packed file may contain."""
        return {CREDENTIAL: self._secrets, "a path of this machine": self._forbidden_paths}

    def _last_name(self, path: str) -> str:
        name = self._path_names.setdefault(_strip_slashes(path), REMOVED)
        if name != REMOVED:
            return name
        parts = [part for part in re.split(r"[\\/]", path) if part]
        return self._remove_secrets(f"{REMOVED}/{parts[-1]}" if len(parts) > 2 else REMOVED)

    def _remove_secrets(self, text: str) -> str:
        for secret in (*self._secrets, *sorted(self.hidden_words, key=lambda word: (-len(word), word))):
            for form in _forms(secret):
                text = text.replace(form, REMOVED)
        return _KEYS.sub(REMOVED, redact_credentials(text))


def _is_absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def _replace_paths(text: str, names: Mapping[str, str]) -> str:
    for path in sorted(names, key=lambda path: (-len(path), path)):
        for form in _forms(path):
            if form in text:
                pattern = rf"(?<![\w/]){re.escape(form)}(?=$|[^\w.-]|\.(?:\W|$))"
                text = re.sub(pattern, names[path].replace("\\", r"\\"), text)
    return text


def _forms(text: str) -> list[str]:
    """Return the forms of `text` in plain text, HTML and JSON."""
    return list(dict.fromkeys((text, html.escape(text), html.escape(text, quote=False), json.dumps(text)[1:-1])))


def _strip_slashes(path: str | Path) -> str:
    return str(path).rstrip("/\\")


def _is_deep(path: str) -> bool:
    """Return whether a path is absolute with at least two names, and so unambiguous in a text."""
    return _is_absolute(path) and len([part for part in re.split(r"[\\/]", path) if part]) > 1


FACTS: Final = "archive.json"
CHECKSUMS: Final = "manifest-sha256.txt"  # BagIt's name (RFC 8493), which ``sha256sum -c`` reads
CRATE: Final = "ro-crate-metadata.json"
VERSIONS: Final = "versions.json"
README: Final = "README.md"
ODD: Final = "odd.md"
TEXTS: Final = (".json", ".yaml", ".yml", ".md", ".html", ".txt", ".py", ".csv")
FORMAT: Final = 1  # version of the archive format


@dataclass
class Contents:
    """The contents of an archive that is being packed; `kind` is `run` or `study`.

    Attributes:
        files: Name in the archive -> content.
        inputs: Name in the archive -> path of an input file, packed or not.
        left_out: Omitted files with reasons, a line for each.
    """

    kind: str
    name: str
    cleaner: Cleaner
    files: dict[str, Content] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    actions: list["Action"] = field(default_factory=list)

    def add_values(self, name: str, values: Mapping[str, Any]) -> None:
        """Add values as a JSON file."""
        self.files[name] = (json.dumps(self.cleaner.clean_value(values), indent=2) + "\n").encode()

    def add_yaml(self, name: str, values: Mapping[str, Any]) -> None:
        """Add values as a YAML file."""
        text = yaml.safe_dump(self.cleaner.clean_value(values), sort_keys=False, allow_unicode=True)
        self.files[name] = text.encode()

    def add_text(self, name: str, text: str) -> None:
        """Add a text file."""
        self.files[name] = self.cleaner.clean_text(text).encode()

    def note_omission(self, note: str) -> None:
        """Add a line on an omitted file to `left_out`."""
        line = self.cleaner.clean_value(note)
        if line not in self.left_out:
            self.left_out.append(line)

    def check(self) -> None:
        """Raise DataError if a text file contains a secret or a path of this machine."""
        for name, content in self.files.items():
            if not name.endswith(TEXTS):
                continue
            text = content.read_bytes() if isinstance(content, Path) else content
            if leak := self.cleaner.find_leak(text.decode("utf-8", errors="replace")):
                raise DataError(f"{name}: contains {leak}: nothing was packed; remove it, or use --no-data")


@dataclass(frozen=True)
class Action:
    """A run or study in the crate: an action that made files.

    Attributes:
        description: The command that repeats the run or study.
        started: Start time as ISO 8601; None if unknown.
        failed: The reason of a failure; else empty.
        unfinished: The status of an unfinished run, which cannot be repeated; else empty.
        inputs: Names of the files that were read.
        outputs: Names of the files and folders that were made.
    """

    id: str
    name: str
    description: str
    started: str | None
    ended: str | None
    failed: str
    unfinished: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def checksums(files: Mapping[str, Content]) -> bytes:
    """Return the SHA-256 of each file in the format of ``sha256sum``."""
    lines = []
    for name in sorted(files):
        with open_content(files[name]) as stream:
            lines.append(f"{file_digest(stream, 'sha256').hexdigest()}  {name}\n")
    return "".join(lines).encode()
