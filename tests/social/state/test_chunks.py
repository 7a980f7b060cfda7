import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event, get_ident

import numpy as np
import pytest

from prism_mesa.social.state import chunks
from prism_mesa.social.state.chunks import map_in_threads, run_in_threads


@pytest.mark.parametrize("threads", [1, 2, 3, 9])
@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_results_come_in_the_order_of_the_parts_whoever_makes_them(threads, n):
    assert map_in_threads(lambda part: part * part, range(n), threads) == [part * part for part in range(n)]


def test_threads_share_the_steps_and_the_calling_one_begins_with_the_last():
    met = [Event(), Event()]

    def meet(own):
        met[own].set()
        assert met[1 - own].wait(60), "one thread does all steps"
        return get_ident()

    first, last = run_in_threads([partial(meet, 0), partial(meet, 1)], 2)
    assert last == get_ident() != first


def test_when_a_step_fails_what_others_have_begun_is_waited_for_and_no_other_one_is_begun(monkeypatch):
    begun, failed = [], Event()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, *args, **kwargs):
            failed.set()
            super().shutdown(*args, **kwargs)

    def wait():
        begun.append("first")
        assert failed.wait(60)
        begun.append("first ended")

    def fail():
        begun.append("last")
        raise KeyboardInterrupt

    monkeypatch.setattr(chunks, "ThreadPoolExecutor", Pool)
    with pytest.raises(KeyboardInterrupt):
        run_in_threads([wait, *[partial(begun.append, "another one")] * 20, fail], 2)
    assert begun[-1] == "first ended" or begun == ["last"]
    assert "another one" not in begun


LARGEST = """
import ctypes
from prism_mesa.social.state.chunks import map_large_blocks
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
map_large_blocks()
print(max(libc.malloc_usable_size(ctypes.c_void_p(libc.malloc(100_000))) for _ in range(50)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has this setting")
def test_blocks_of_100_kb_are_mapped_in_whole_pages():
    """In the heap, glibc does not round their size up to pages."""
    assert int(subprocess.check_output([sys.executable, "-c", LARGEST])) > 102_000  # 25 pages are 102,400 bytes


@pytest.mark.parametrize("n", [10, 1 << 23])
def test_released_memory_of_mapped_zeros_can_be_written_again(n):
    table = chunks.mapped_zeros(2 * n, np.int32).reshape(2, n)
    assert not table.any()
    for _ in range(2):
        table[:, ::1000] = 7
        assert (table[:, ::1000] == 7).all()
        chunks.release_memory(table)
        if n > 10 and sys.platform == "linux":
            assert not table.any()
