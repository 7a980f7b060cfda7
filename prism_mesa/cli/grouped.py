"""How commands are shown in a help: by what one wants, each with the whole of its first sentence."""

from typing import Any

from typer.core import TyperGroup

_NO_LIMIT = 10_000


class GroupedCommands(TyperGroup):
    """A group of commands whose help shows them under the titles that their ``rich_help_panel`` has."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, those of one title together; lines that are too long are wrapped, never cut off."""
        shown = [self.commands[name] for name in self.list_commands(ctx) if not self.commands[name].hidden]
        titles: dict[str, list[tuple[str, str]]] = {}
        for command in shown:
            title = getattr(command, "rich_help_panel", None) or "Commands"
            titles.setdefault(title, []).append((command.name or "", command.get_short_help_str(_NO_LIMIT)))
        widest = max((len(command.name or "") for command in shown), default=0)
        for title, rows in titles.items():
            with formatter.section(title):  # one width for all, so that the texts stand in one column
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])
