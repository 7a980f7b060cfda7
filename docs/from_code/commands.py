"""All commands of `prism` with their arguments and options, from the command line itself."""

import re
from collections.abc import Callable, Iterator
from inspect import cleandoc
from typing import Any

import typer

from prism_mesa.cli.app import app


def every_command() -> Iterator[tuple[str, Any]]:
    """Yield each command with its name as it is typed, such as `prism study run`."""
    yield from _below("prism", typer.main.get_command(app))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    if not inner:
        yield name, command
    for word, one in inner.items():
        yield from _below(f"{name} {word}", one)


def sections(holds: Callable[[str, str], bool]) -> str:
    """Return a section for each command that `holds` takes, by its name and the last name of its module."""
    mine = ((name, one) for name, one in every_command() if holds(name, one.callback.__module__.rpartition(".")[2]))
    return "\n".join(_section(name, command) for name, command in mine)


def _section(name: str, command: Any) -> str:
    context = typer.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    said = _text(command.help or "")
    rows = [_row(param, context) for param in command.params if not getattr(param, "hidden", False)]
    table = f"| argument or option | |\n|---|---|\n{''.join(rows)}" if rows else ""
    return f"## {name}\n\n{said}\n\n    {usage}\n\n{table}"


def _row(param: Any, context: Any) -> str:
    shown, said = param.get_help_record(context) or (param.human_readable_name, "")
    if param.param_type_name == "argument":
        shown = re.sub(r" <[^>]*>$", "", shown)
    cells = (f"`{shown}`", _text(said))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _text(text: str) -> str:
    """Return help as Markdown: its paragraphs, with nothing in them that Markdown would read."""
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", cleandoc(text.replace("\b", "")))]
    return "\n\n".join(part.replace("<", "&lt;").replace("*", "\\*") for part in paragraphs)
