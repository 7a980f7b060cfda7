"""Examples in docstrings as blocks of code: griffe takes them for such under a heading "Examples" only."""

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^>>> .*(?:\n.*\S.*)*", re.MULTILINE)


class FencedDoctests(Extension):
    """Puts fences around examples."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of whatever has one."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
