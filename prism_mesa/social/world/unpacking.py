"""Open text files as streams of UTF-8, which are checked while they are read."""

import codecs
import gzip
import io
import os
import re
from pathlib import Path
from typing import BinaryIO, Final, cast

from prism_mesa.social.params import FilesParams

BLOCK: Final = 1 << 20
"""Bytes that are unpacked at a time."""
_MAX_GZIP_RATIO: Final = 1100
"""More than the 1,032 bytes to which a byte of gzip can unpack (deflate's longest match in its shortest code)."""
_EXCEL_LINE: Final = re.compile(rb'\A"?sep=."?[\r\n]+', re.IGNORECASE)
_GZIP: Final = b"\x1f\x8b"
_FIRST_BYTES: Final = (
    (_GZIP, "it is packed with gzip: rename it to end in .csv.gz"),
    (b"PK\x03\x04", "it is a zip file, perhaps of a spreadsheet: save the table as CSV"),
    (b"PAR1", "it is a Parquet file: rename it to end in .parquet"),
    (codecs.BOM_UTF16_LE, "set files.encoding=utf-16"),
    (codecs.BOM_UTF16_BE, "set files.encoding=utf-16"),
)


def open_text(file: Path, files: FilesParams) -> BinaryIO:
    """Return a text file as a stream of UTF-8, unpacked if its name ends in .gz; call `check_size` first.

    Raises:
        ValueError: While the stream is read, if the file is not in `files.encoding`.
        OSError, EOFError, zlib.error: If the file cannot be unpacked.
    """
    return io.BufferedReader(_Utf8Stream(file, files.encoding), BLOCK)


def check_size(file: Path, max_bytes: int) -> None:
    """Check that a file unpacks to at most `max_bytes`; a gzip file that might be larger is unpacked once.

    Raises:
        ValueError: If the file unpacks to more.
    """
    size = os.path.getsize(file)
    if file.suffix.lower() != ".gz" and size > max_bytes:
        raise size_error(max_bytes)
    if file.suffix.lower() != ".gz" or size * _MAX_GZIP_RATIO <= max_bytes:
        return
    unpacked = 0
    with gzip.open(file) as source:
        while block := source.read(BLOCK):
            unpacked += len(block)
            if unpacked > max_bytes:
                raise size_error(max_bytes)


def may_be_utf8(file: Path, files: FilesParams) -> bool:
    """Return whether a file that is read in another encoding is valid UTF-8 with letters beyond ASCII.

    Raises:
        OSError, EOFError, zlib.error: If the file cannot be unpacked.
    """
    if codecs.lookup(files.encoding).name in ("utf-8", "utf-8-sig"):
        return False
    try:
        with io.TextIOWrapper(_unpacked(file), "utf-8") as lines:
            return max((not line.isascii() for line in lines), default=False)
    except UnicodeDecodeError:
        return False


def _unpacked(file: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(file)) if file.suffix.lower() == ".gz" else file.open("rb")


def size_error(max_bytes: int) -> ValueError:
    """Return the error for a file that unpacks to more than `max_bytes`."""
    return ValueError(f"it unpacks to more than files.max_bytes={max_bytes}: use a part of it, or raise that key")


class _Utf8Stream(io.RawIOBase):
    """The unpacked bytes of a text file as UTF-8, without a byte order mark or Excel's first line."""

    def __init__(self, file: Path, encoding: str) -> None:
        self._source = _unpacked(file)
        self._encoding = codecs.lookup(encoding).name
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._file, self._n_read, self._decoded = file, 0, b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._source.close()
        super().close()

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        """Fill a buffer and return the number of bytes read; 0 at the end."""
        while not self._decoded:
            is_first, block = self._n_read == 0, self._source.read(BLOCK)
            text = self._decode(block)
            self._decoded = _EXCEL_LINE.sub(b"", text) if is_first else text
            if not block:
                break
        n = min(len(buffer), len(self._decoded))
        buffer[:n], self._decoded = self._decoded[:n], self._decoded[n:]
        return n

    def _decode(self, block: bytes) -> bytes:
        """Return a block as UTF-8; an empty block ends the file."""
        is_first, self._n_read = self._n_read == 0, self._n_read + len(block)
        if self._encoding == "utf-8" and block.isascii() and not self._decoder.getstate()[0]:
            return block
        try:
            text = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            raise ValueError(self._invalid_utf8(error)) from None
        if self._encoding != "utf-8":
            return text.encode()
        return block.removeprefix(codecs.BOM_UTF8) if is_first else block

    def _invalid_utf8(self, error: UnicodeDecodeError) -> str:
        position = self._n_read - len(error.object) + error.start
        with _unpacked(self._file) as source:
            first_bytes = source.read(4)
            line = first_bytes[:position].count(b"\n") + 1
            for start in range(4, position, BLOCK):
                line += source.read(min(BLOCK, position - start)).count(b"\n")
        fault = f"{error.encoding!r} codec can't decode byte 0x{error.object[error.start]:02x} in position {position}"
        advice = "set the encoding that it is in" if self._encoding != "utf-8" else "set files.encoding=latin-1"
        hints = [hint for mark, hint in _FIRST_BYTES if first_bytes.startswith(mark)]
        if self._file.suffix.lower() == ".gz" and first_bytes.startswith(_GZIP):
            hints = ["it is packed with gzip twice: unpack it once"]
        return f"{fault} (line {line}): it is not in {self._encoding}: {hints[0] if hints else advice}"
