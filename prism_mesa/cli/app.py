"""The command `prism`: its commands, and how errors end it."""

import gc
import sys
import warnings
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from prism_mesa.cli import analysis, doctor, experiments, listing, new, page, runs, studies, validation
from prism_mesa.cli.arguments import GroupedCommands
from prism_mesa.cli.console import InterruptedByUserError, keep_streams_open, print_status, warning_line
from prism_mesa.errors import BadInputError, NotedWarning, PrismError, format_error
from prism_mesa.terminal import show_line

app = typer.Typer(
    cls=GroupedCommands,
    help="Simulate nations, or a social platform whose agents are statecharts. An LLM decides what is left open.",
    epilog="Run prism COMMAND --help for details.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(requested: bool) -> None:
    if requested:
        show_line(f"prism {version('prism-mesa')}")
        raise typer.Exit


@app.callback()
def _main(
    _: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Handle the options that precede a command."""


# in the order in which --help lists them
_SIMULATE, _INSPECT, _ASK, _SHARE = "Simulate", "Look at runs", "Answer questions with many runs", "Set up and share"
for panel, commands in (
    (_SIMULATE, (runs.run, runs.economy, runs.resume, runs.branch, runs.chart)),
    (_INSPECT, (listing.runs, analysis.why, analysis.interview, analysis.survey, runs.replay)),
    (_ASK, (studies.sweep, validation.validate, experiments.experiments, validation.calibrate, analysis.distill)),
    (_SHARE, (new.new, doctor.doctor, listing.archive)),
):
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.command(name="app", rich_help_panel=_SIMULATE)(page.browser_page)
# --with stands between the runs, so click must not parse it
app.command(rich_help_panel=_INSPECT, context_settings={"ignore_unknown_options": True})(analysis.compare)
app.add_typer(analysis.ledger, name="ledger", rich_help_panel=_INSPECT)
app.add_typer(studies.study, name="study", rich_help_panel=_ASK)

# typer has its own copy of click with private names; this is its click.UsageError
_UsageError: Any = typer.BadParameter.__base__
_command = cache(partial(typer.main.get_command, app))  # takes 14 ms


def main() -> None:
    """Run the command line, and exit."""
    # imports create a million permanent objects, and searching them for garbage takes most of a second
    gc.set_threshold(20_000, 20)
    code = run_command()
    gc.freeze()  # the last garbage collection would take a third of a second
    sys.exit(code)


def run_command() -> int:
    """Run the command in `sys.argv`, and return its exit code; each known error is one line on stderr."""
    keep_streams_open()
    warnings.formatwarning = warning_line
    warnings.simplefilter("ignore", NotedWarning)
    sys.path.append(str(Path.cwd()))  # find a user's modules here, after installed packages
    code, message = 1, ""
    try:
        code = _command()(sys.argv[1:] or ["--help"], prog_name="prism", standalone_mode=False) or 0
        if code == InterruptedByUserError.exit_code:  # typer returns it for an interrupt
            message = "interrupted"
    except PrismError as error:
        code, message = error.exit_code, format_error(error)
    except _UsageError as error:
        code, message = BadInputError.exit_code, f"{error.format_message()} (see prism --help)"
    except (KeyboardInterrupt, typer.Abort):
        code, message = InterruptedByUserError.exit_code, "interrupted"
    except MemoryError as error:
        message = f"not enough memory: {error} (fewer agents, or a smaller feed.size or feed.window, need less)"
    except OSError as error:  # a full disk, or a folder where a picture should be
        message = str(error)
    except Exception as error:
        if not hasattr(error, "__notes__"):
            raise
        message = format_error(error)  # a user's guard or action; the note names the line
    if message:
        print_status(f"prism: {message}")
    return code


if __name__ == "__main__":
    main()
