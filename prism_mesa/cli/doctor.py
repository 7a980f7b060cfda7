"""The command that checks the installation."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

from typer import Option

from prism_mesa.cli.arguments import AsJson
from prism_mesa.cli.listing import format_size
from prism_mesa.errors import PrismError
from prism_mesa.terminal import show_json, show_line

if TYPE_CHECKING:
    from prism_mesa.api.caches import Cache
    from prism_mesa.api.installation import Installation

_WIDTH: Final = 18


def doctor(
    clean: Annotated[bool, Option("--clean", help="remove caches unused for a week; results are kept")] = False,
    ollama: Annotated[
        str | None, Option(metavar="URL", help="address of Ollama's server, if it is on another machine")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the installation: packages, LLMs, the page, caches.

    For each missing part, it says how to install it. The exit code is 0 unless a part that every run needs is broken.
    Without --clean, nothing is changed.
    """
    from prism_mesa.api.caches import remove
    from prism_mesa.api.installation import check_installation

    installation = check_installation(ollama)
    removed = [cache for cache in installation.caches if clean and cache.removable and remove(cache)]
    if as_json:
        findings = list(map(asdict, installation.findings))
        caches = [asdict(cache) | {"path": str(cache.path)} for cache in installation.caches]
        sizes = [{"path": str(cache.path), "size_bytes": cache.size_bytes} for cache in removed]
        show_json({"findings": findings, "kept": caches, "removed": sizes, "broken": len(installation.broken)})
    else:
        _show(installation, removed, clean=clean)
        if clean:
            for cache in removed:
                show_line(f"{'removed':<{_WIDTH}}{format_size(cache.size_bytes):>9}  {cache.path}")
            show_line(f"{'freed':<{_WIDTH}}{_total_size(removed):>9}")
    if installation.broken:
        names = ", ".join(finding.what for finding in installation.broken)
        raise PrismError(f"broken, and needed by every run: {names}")


def _total_size(caches: "Iterable[Cache]") -> str:
    return format_size(sum(cache.size_bytes for cache in caches))


def _show(installation: "Installation", removed: "list[Cache]", *, clean: bool) -> None:
    from prism_mesa.api.caches import OLD_DAYS

    for finding in installation.findings:
        mark = "" if finding.standing == "ok" else f"{finding.standing}: "
        show_line(f"{finding.what:<{_WIDTH}}{mark}{finding.told}")
        if finding.todo:
            show_line(f"{'':<{_WIDTH}}-> {finding.todo}")
    remaining = [cache for cache in installation.caches if cache not in removed]
    for kind in dict.fromkeys(cache.what for cache in remaining):
        group = [cache for cache in remaining if cache.what == kind]
        location = group[0].path if len(group) == 1 else f"{len(group)} in {group[0].path.parent}"
        show_line(f"{'kept: ' + kind:<{_WIDTH + 4}}{_total_size(group):>9}  {location}")
    old = [cache for cache in remaining if cache.removable]
    if old and not clean:
        size_text = f"{_total_size(old)} unused for {OLD_DAYS} days"
        show_line(f"{'':<{_WIDTH}}-> prism doctor --clean frees {size_text}")
