"""Functions that print to the terminal without control characters."""

import json
import sys
from typing import Any, Final, TextIO

from prism_mesa.errors import printable

_DIM_CODES: Final = ("\x1b[2m", "\x1b[0m")


class DimmedText(str):
    """Text that `show` prints dimmed."""


def show(text: object = "", *, file: TextIO | None = None, end: str = "\n") -> None:
    """Print text without control characters except line breaks, by default to standard output."""
    lines = [printable(line) for line in str(text).split("\n")]
    prefix, suffix = _DIM_CODES if isinstance(text, DimmedText) else ("", "")
    print(f"{prefix}{'\n'.join(lines)}{suffix}", file=file or sys.stdout, end=end, flush=True)


def show_line(text: object, *, file: TextIO | None = None) -> None:
    """Print text on one line."""
    show(" ".join(str(text).split("\n")), file=file)


def show_json(value: Any) -> None:
    """Print a value to standard output as JSON, on one line and in printable ASCII."""
    show(json.dumps(value).replace("\x7f", "\\u007f"))
