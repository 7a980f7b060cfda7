"""What a page says in one line when it cannot load, where Solara's would stay white."""

import html
import re
from typing import Final

from prism_mesa.view.server.front_end import FETCH, needed_files

_STYLE: Final = (
    "font:16px/1.5 system-ui,sans-serif;max-width:44em;margin:3em auto;padding:0 1em;color:#222;background:#fff"
)
_PATIENCE_S: Final = 20
"""Seconds after which a page that shows nothing says so; Solara's takes about two."""
_PACKAGES: Final = re.compile(r"/_solara/cdn/((?:@[\w.-]+/)?[\w.-]+@[^\"/]+/[^\"?#]+)")

NO_FRONT_END: Final = (
    f"The front end of this page is not on this machine yet: run '{FETCH}' once where there is internet, then reload."
)


def plain_page(line: str) -> str:
    """Return an HTML page that says one line, and needs nothing else."""
    said = html.escape(line)
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>PRISM</title>'
    return f'{head}<main><h1 style="{_STYLE}">PRISM</h1><p style="{_STYLE}">{said}</p></main></html>'


def with_notices(page: str) -> str:
    """Return Solara's page with lines for browsers that cannot show it, its language, and zooming allowed."""
    lines = {
        "script": "This page needs JavaScript: allow it for this address, then reload.",
        "load": f"The front end of this page did not load: run '{FETCH}', then reload.",
        "slow": "This page did not open its connection to 'prism app': see whether it still runs, then reload.",
    }
    said = {name: html.escape(line, quote=True) for name, line in lines.items()}
    notice = (
        f'<noscript><p style="{_STYLE}">{said["script"]}</p></noscript>'
        f'<p id="prism-notice" role="alert" style="{_STYLE}" hidden'
        f' data-load="{said["load"]}" data-slow="{said["slow"]}"></p>'
        f"<script>{_WATCH}</script>"
    )
    page = page.replace("<html>", '<html lang="en">', 1)
    page = re.sub(
        r'<meta name="viewport"[^>]*>', '<meta name="viewport" content="width=device-width, initial-scale=1">', page
    )
    return re.sub(r"(<body[^>]*>)", lambda found: found[1] + notice, page, count=1)


_WATCH: Final = f"""
(() => {{
  const notice = document.getElementById("prism-notice");
  const mounted = () => document.querySelector(".jupyter-widgets, .solara-content-main, .v-app-bar");
  const say = (why) => {{ notice.textContent = notice.dataset[why]; notice.hidden = false; }};
  window.addEventListener("load", () => {{ if (!window.solara || !window.Vue) say("load"); }});
  setTimeout(() => {{
    if (mounted() || !notice.hidden) return;
    say("slow");
    const watch = setInterval(() => {{ if (mounted()) {{ notice.hidden = true; clearInterval(watch); }} }}, 500);
  }}, {_PATIENCE_S * 1000});
}})();
"""


def unknown_files(page: str) -> list[str]:
    """Return which files of a front end a page of Solara names that are not pinned: it is another version of Solara."""
    return sorted(set(_PACKAGES.findall(page)) - needed_files().keys())
