"""The command that writes a small project."""

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Option

from prism_mesa.cli.arguments import AsJson
from prism_mesa.cli.console import prism_command
from prism_mesa.errors import BadInputError, quote_path, shorten
from prism_mesa.terminal import show_json, show_line

FILES: Final = {
    "README.md": "the commands",
    "config.yaml": "what is simulated",
    "my_chart.py": "how agents behave: a chart of your own",
    "study.yaml": "a question with two arms",
    "first.ipynb": "a notebook that runs the world and plots it",
}
"""The files of a new project (`prism_mesa.cli.new_project`), with descriptions."""

MODEL_FILES: Final = {
    "README.md": "the commands",
    "shop.py": "a Mesa model with a statechart and an oracle",
    "test_shop.py": "what must hold in it",
}
"""The files of a project with ``--model`` (`prism_mesa.cli.new_model`)."""

_WIDTH: Final = 1 + max(map(len, FILES))


def new(
    name: Annotated[str, Argument(metavar="DIR", help="folder of the project, new or empty")],
    as_json: AsJson = False,
    model: Annotated[bool, Option("--model", help="a Mesa model of your own, without the platform")] = False,
) -> None:
    """Write a small starting project.

    It has a configuration, a chart of your own, a study, a notebook, and a README with the commands; or, with --model,
    a Mesa model of your own. A folder that holds more than a .git is not changed.
    """
    if not name:
        raise BadInputError("DIR: is empty: name a folder (. is the current one)")
    folder = Path(name)
    _make_folder(folder)
    templates = files("prism_mesa.cli.new_model" if model else "prism_mesa.cli.new_project")
    contents = MODEL_FILES if model else FILES
    for file in contents:
        with (folder / file).open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(templates.joinpath(file).read_text(encoding="utf-8"))
    prism = prism_command(folder)
    target = f"./{folder}" if str(folder).startswith("-") else folder
    change_folder = [] if folder.resolve() == Path.cwd() else [f"cd {quote_path(target)}"]
    commands = [*change_folder, f"{prism} run config.yaml", f"{prism} study run study.yaml --seeds 2"]
    if model:
        python = f"{prism.removesuffix('prism')}python"
        commands = [*change_folder, f"{python} shop.py", f"{python} -m pytest test_shop.py"]
    if as_json:
        show_json({"dir": str(folder), "files": list(contents), "next": commands})
        return
    show_line(f"made: {folder}")
    for file, description in contents.items():
        show_line(f"  {file:<{_WIDTH}} {description}")
    show_line("next:")
    for line in commands:
        show_line(f"  {line}")


def _make_folder(folder: Path) -> None:
    if not str(folder).isprintable():
        raise BadInputError(f"DIR: {str(folder)!r}: holds a character that cannot be shown; choose another name")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = sorted(path.name for path in folder.iterdir() if path.name != ".git")
    except OSError as error:
        raise BadInputError(f"DIR: {folder}: cannot make that folder: {error.strerror}") from None
    if names:
        sample = shorten(", ".join(names), 60)
        raise BadInputError(f"DIR: {folder} is not empty ({sample}): name an empty or a new folder")
