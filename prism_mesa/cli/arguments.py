"""Types of arguments, configurations from arguments, and grouped help, for all commands."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Option
from typer.core import TyperGroup

from prism_mesa.errors import BadInputError, shorten

if TYPE_CHECKING:
    from prism_mesa.runs.config import Config

DEFAULT_FILE = Path("configs/default.yaml")
"""The configuration file that commands use by default, if it exists."""

CONFIG_DEFAULTS: Final[dict[str, Any]] = {"reasoner": {"kind": "auto"}}
"""Defaults for keys of a platform that the file lacks."""

MAX_AGENTS, MAX_ROUNDS = 50_000_000, 10_000_000  # as for agents.n and rounds

ConfigArguments = Annotated[
    list[str] | None,
    Argument(metavar="CONFIG|KEY=VALUE", help="an optional YAML file, then keys to override: agents.n=100"),
]
NationsArguments = Annotated[
    list[str] | None,
    Argument(metavar="CONFIG|KEY=VALUE", help="an optional YAML file, then keys: economy.policy=taylor"),
]
OutOption = Annotated[Path, Option(metavar="DIR", help="parent folder of the results, created if missing")]
Trust = Annotated[
    bool,
    Option("--trust", help="trust a run from elsewhere: use servers, modules and files that it names (runs its code)"),
]
AsJson = Annotated[bool, Option("--json", help="print one JSON object on stdout, and nothing else")]

Run = Annotated[Path, Argument(metavar="RUN", help="folder of a run: results/<run-id>")]


def config_from_arguments(arguments: list[str] | None) -> "Config":
    """Return the configuration that a command's arguments describe."""
    from prism_mesa.runs.config import load_config

    file, overrides = file_and_overrides(arguments, DEFAULT_FILE)
    return load_config(file, overrides, defaults=CONFIG_DEFAULTS)


def file_and_overrides(arguments: list[str] | None, default: Path) -> tuple[str | Path | None, list[str]]:
    """Return the file in the first argument, else the default file if it exists, else None; and the overrides."""
    texts = arguments or []
    if texts and ("=" not in texts[0] or is_file(texts[0])):
        return texts[0], check_unique(texts[1:])
    return (default if default.is_file() else None), check_unique(texts)


def check_unique(overrides: Sequence[str] | None) -> list[str]:
    """Return ``key=value`` strings unchanged; raises BadInputError if a key is repeated."""
    texts = list(overrides or ())
    keys = [text.partition("=")[0].strip() for text in texts]
    for key in filter(None, keys):
        if keys.count(key) > 1:
            duplicates = ", ".join(shorten(text, 80) for text, other in zip(texts, keys, strict=True) if other == key)
            raise BadInputError(f"override: {key!r} is given more than once ({duplicates}): give it once")
    return texts


def is_file(name: str) -> bool:
    """Return whether a file exists."""
    try:
        return Path(name).is_file()
    except OSError:  # the name is too long
        return False


_NO_LIMIT = 10_000


class GroupedCommands(TyperGroup):
    """A group of commands whose help has the titles of their ``rich_help_panel``."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by title; long lines are wrapped, not cut off."""
        visible = [self.commands[name] for name in self.list_commands(ctx) if not self.commands[name].hidden]
        titles: dict[str, list[tuple[str, str]]] = {}
        for command in visible:
            title = getattr(command, "rich_help_panel", None) or "Commands"
            titles.setdefault(title, []).append((command.name or "", command.get_short_help_str(_NO_LIMIT)))
        widest = max((len(command.name or "") for command in visible), default=0)
        for title, rows in titles.items():
            with formatter.section(title):  # aligns all sections
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])
