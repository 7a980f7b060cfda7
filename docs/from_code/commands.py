"""All commands of `prism` with their arguments and options."""

import re
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

import typer

from prism_mesa.cli.app import app


def every_command() -> Iterator[tuple[str, Any]]:
    """Yield each command with its full name, such as `prism study run`."""
    yield from _below("prism", typer.main.get_command(app))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    if not inner:
        yield name, command
    for word, subcommand in inner.items():
        yield from _below(f"{name} {word}", subcommand)


def sections() -> str:
    """Return a section for each command."""
    return "\n".join(_section(name, command) for name, command in every_command())


def _section(name: str, command: Any) -> str:
    context = typer.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    rows = [_row(param, context) for param in command.params if not getattr(param, "hidden", False)]
    table = f"| argument or option | meaning |\n|---|---|\n{''.join(rows)}" if rows else ""
    return f"## {name}\n\n{_text(command.help or '')}\n\n```text\n{usage}\n```\n\n{table}"


def _row(param: Any, context: Any) -> str:
    flags, help_text = param.get_help_record(context) or (param.human_readable_name, "")
    if param.param_type_name == "argument":
        flags = re.sub(r" <[^>]*>$", "", flags)
    cells = (f"`{flags}`", _text(help_text))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _text(text: str) -> str:
    """Return the paragraphs of a help text with Markdown's own characters escaped."""
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", cleandoc(text.replace("\b", "")))]
    return "\n\n".join(part.replace("<", "&lt;").replace("*", "\\*") for part in paragraphs)
