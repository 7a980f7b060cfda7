"""Slots, of which so many can be held at a time; whoever has tried most often gets the next. One loop owns them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from heapq import heappop, heappush
from itertools import count


class PrioritySemaphore:
    """A semaphore with ranks: of those that wait, the lowest rank goes first, then who came first."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._free = n
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._came = count()

    @asynccontextmanager
    async def slot(self, rank: int = 0) -> AsyncIterator[None]:
        """Wait for a slot and hold it for the block."""
        await self._take(rank)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, rank: int) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (rank, next(self._came), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was its turn at the moment when it was given up
                self._give_back()
            raise

    def _give_back(self) -> None:
        while self._waiting:
            _, _, turn = heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
