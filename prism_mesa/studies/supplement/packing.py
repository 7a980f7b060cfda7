"""What an archive holds besides the files of its run or study: what stands in all of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from prism_mesa.errors import DataError
from prism_mesa.studies.supplement.cleaning import Cleaner
from prism_mesa.studies.supplement.zip_files import Content, sha256_of

FACTS: Final = "archive.json"
CHECKSUMS: Final = "manifest-sha256.txt"
"""As BagIt names it (RFC 8493): ``sha256sum -c`` reads it."""
CRATE: Final = "ro-crate-metadata.json"
VERSIONS: Final = "versions.json"
README: Final = "README.md"
ODD: Final = "odd.md"
TEXTS: Final = (".json", ".yaml", ".yml", ".md", ".html", ".txt", ".py", ".csv")
FORMAT: Final = 1
"""Of archives; one that says another is another version's."""


@dataclass
class Contents:
    """What is packed, as it comes together.

    Attributes:
        kind: `run` or `study`.
        name: Of the run or study.
        cleaner: What takes out what is of this machine.
        files: Content of each file by its name in the archive.
        inputs: Where each file that runs read lies, by its name in the archive, packed or not.
        left_out: What is not in it that a reader might look for, a line each.
        actions: Of each run what the crate says of it.
    """

    kind: str
    name: str
    cleaner: Cleaner
    files: dict[str, Content] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    actions: list["Action"] = field(default_factory=list)

    def put_values(self, name: str, values: Mapping[str, Any]) -> None:
        """Put values as a JSON file."""
        self.files[name] = (json.dumps(self.cleaner.value(values), indent=2) + "\n").encode()

    def put_yaml(self, name: str, values: Mapping[str, Any]) -> None:
        """Put values as a YAML file."""
        text = yaml.safe_dump(self.cleaner.value(values), sort_keys=False, allow_unicode=True)
        self.files[name] = text.encode()

    def put_text(self, name: str, text: str) -> None:
        """Put a text."""
        self.files[name] = self.cleaner.text(text).encode()

    def leave_out(self, told: str) -> None:
        """Note what is not in the archive, and why."""
        line = self.cleaner.value(told)
        if line not in self.left_out:
            self.left_out.append(line)

    def check(self) -> None:
        """Make sure that no text holds what is of this machine.

        Raises:
            DataError: If one does.
        """
        for name, content in self.files.items():
            if not name.endswith(TEXTS):
                continue
            text = content.read_bytes() if isinstance(content, Path) else content
            if found := self.cleaner.found_in(text.decode("utf-8", errors="replace")):
                raise DataError(f"{name}: holds {found}: nothing was packed; take it out, or leave own data out")


@dataclass(frozen=True)
class Action:
    """That files were made by PRISM, for the crate.

    Attributes:
        id: Its name in the crate.
        name: In words.
        description: The command that makes it again.
        started: When, as ISO 8601; None if not known.
        ended: Likewise.
        failed: Why it failed; empty if it did not.
        unended: Its status, if it has not come to its end, so that nothing is there to repeat; else empty.
        read: Names of the files that it read.
        made: Names of the files, or folders, that it made.
    """

    id: str
    name: str
    description: str
    started: str | None
    ended: str | None
    failed: str
    unended: str
    read: tuple[str, ...]
    made: tuple[str, ...]


def checksums(files: Mapping[str, Content]) -> bytes:
    """Return the SHA-256 of each file, a line each, as ``sha256sum`` writes them."""
    return "".join(f"{sha256_of(files[name])}  {name}\n" for name in sorted(files)).encode()
