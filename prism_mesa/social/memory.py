"""Giving memory back to the system. Nothing here knows what it was used for."""

import ctypes
import sys
from functools import cache
from typing import Any


def give_back() -> None:
    """Let the C library return what freed arrays have left in its heap, where it can (glibc); else do nothing.

    By itself it keeps blocks of up to 32 MB for reuse, which after some rounds of a million agents is a fifth of all.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
