"""The command that says what is installed, what answers, and what to do about what is missing."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from prism_mesa.cli.arguments import AsJson
from prism_mesa.cli.listing import size_in_words
from prism_mesa.errors import PrismError
from prism_mesa.terminal import show_json, show_line

if TYPE_CHECKING:
    from prism_mesa.api.caches import Kept
    from prism_mesa.api.installation import Installation

_WIDTH: Final = 18


def doctor(
    clean: Annotated[
        bool, typer.Option("--clean", help="remove what PRISM keeps and nobody has used for a week; results stay")
    ] = False,
    ollama: Annotated[str | None, typer.Option(metavar="URL", help="Ollama's server, if it is not here")] = None,
    as_json: AsJson = False,
) -> None:
    """Check the installation: packages, LLMs, the page, caches.

    Each thing that is missing is followed by what to do about it. The exit code is 0 unless something that every run
    needs is broken. Nothing is changed without --clean.
    """
    from prism_mesa.api.installation import look

    found = look(ollama)
    freed = _clean(found.kept) if clean else []
    if as_json:
        findings, kept = [asdict(one) for one in found.findings], [_as_json(one) for one in found.kept]
        removed = [{"path": str(one.path), "size_bytes": size} for one, size in freed]
        show_json({"findings": findings, "kept": kept, "removed": removed, "broken": len(found.broken)})
    else:
        _tell(found, {one.path for one, _ in freed}, clean=clean)
        if clean:
            for one, size in freed:
                show_line(f"{'removed':<{_WIDTH}}{size_in_words(size):>9}  {one.path}")
            show_line(f"{'freed':<{_WIDTH}}{size_in_words(sum(size for _, size in freed)):>9}")
    if found.broken:
        raise PrismError(f"broken, and needed by every run: {', '.join(one.what for one in found.broken)}")


def _clean(kept: "Iterable[Kept]") -> "list[tuple[Kept, int]]":
    """Remove what is old; return what was removed, with its bytes."""
    from prism_mesa.api.caches import remove

    return [(one, one.size_bytes) for one in kept if one.removable and remove(one)]


def _as_json(kept: "Kept") -> dict[str, Any]:
    return asdict(kept) | {"path": str(kept.path)}


def _tell(found: "Installation", removed: "set[Any]", *, clean: bool) -> None:
    from prism_mesa.api.caches import OLD_DAYS

    for one in found.findings:
        mark = "" if one.standing == "ok" else f"{one.standing}: "
        show_line(f"{one.what:<{_WIDTH}}{mark}{one.told}")
        if one.todo:
            show_line(f"{'':<{_WIDTH}}-> {one.todo}")
    left = [one for one in found.kept if one.path not in removed]
    for what in dict.fromkeys(one.what for one in left):
        group = [one for one in left if one.what == what]
        where = str(group[0].path if len(group) == 1 else group[0].path.parent)
        size, many = size_in_words(sum(one.size_bytes for one in group)), "" if len(group) == 1 else f"{len(group)} in "
        show_line(f"{'kept: ' + what:<{_WIDTH + 4}}{size:>9}  {many}{where}")
    old = [one for one in left if one.removable]
    if old and not clean:
        size = size_in_words(sum(one.size_bytes for one in old))
        show_line(f"{'':<{_WIDTH}}-> prism doctor --clean frees {size} that nobody has used for {OLD_DAYS} days")
