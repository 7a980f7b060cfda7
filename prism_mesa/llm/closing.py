"""What holds something until it is closed, as a context manager."""

from types import TracebackType
from typing import Self


class Closing:
    """Calls `close` at the end of a ``with`` block."""

    def close(self) -> None:
        """Let go of what is held; doing it twice does no harm."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
