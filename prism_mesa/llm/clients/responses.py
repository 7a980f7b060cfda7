"""Limits on a server's response: no redirects, at most `MOST_BYTES`, and none of our credentials."""

import base64
import html
import json
import re
import sys
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from prism_mesa.errors import OracleError

MOST_BYTES: Final = 2**24
"""Bytes of a response after unpacking."""
_SHORTEST: Final = 8
"""Fewest characters of a secret that is masked; shorter ones occur in ordinary answers."""
_MOST_ENCODINGS: Final = 2


def guarded(http: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return arguments of an asynchronous HTTP client (see `urls.credentials`) whose responses a `Guard` reads.

    `keys` are further secrets that the client sends. It asks the server not to compress anything.
    """
    user, password = http.get("auth", ("", ""))
    secrets = [f"{user}:{password}", password, *map(str, http.get("params", {}).values()), *keys]
    return {**http, "headers": {"Accept-Encoding": "identity"}, "event_hooks": {"response": [Guard(secrets)]}}


def kept(host: str) -> Any:
    """Return how many connections are kept: none without TLS, as the rest of one response may look like the next."""
    from httpx import Limits

    return Limits(max_connections=None, max_keepalive_connections=None if host.startswith("https:") else 0)


class Guard:
    """Reads the body of a response as soon as it begins to arrive: an event hook of an HTTP client.

    Args:
        secrets: Texts that become ``***`` where a server repeats them, also in base64 or escaped.

    Raises:
        OracleError: `http-307`, ... for a redirect, which is not followed; `too-large` for more than `MOST_BYTES`;
            `transport` for a body that cannot be unpacked.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        packed = {one: base64.b64encode(one.encode()).decode().rstrip("=") for one in secrets}
        forms = [form for pair in packed.items() for form in pair if len(form) >= _SHORTEST]
        ways = ("".join(map(_escaped, form)) for form in sorted(forms, key=len, reverse=True))
        self._secrets = re.compile("|".join(ways).encode() or b"(?!)")

    async def __call__(self, response: Any) -> None:
        """Read the response, and let it have a body that is unpacked, and without secrets."""
        headers = response.headers
        if 300 <= response.status_code < 400:
            to = self._masked(str(headers.get("location", "")).encode()).decode()
            told = f"the server redirects to {to[:200]!r}, which is not followed; give that address if you trust it"
            raise OracleError(f"http-{response.status_code}", told)
        body = bytearray()
        async for block in response.stream:
            body += block
            _check_size(body)
        await response.stream.aclose()
        unpacked = self._masked(_unpacked(bytes(body), headers.pop("content-encoding", "")))
        # each of the two HTTP packages takes only a stream of its own
        response.stream = sys.modules[type(response).__module__.partition(".")[0]].ByteStream(unpacked)

    def _masked(self, text: bytes) -> bytes:
        return self._secrets.sub(b"***", text)


def _escaped(char: str) -> str:
    """Return a pattern of a character as it is, and as JSON, HTML, an address or base64 in an address writes it."""
    raw = {char, json.dumps(char)[1:-1], html.escape(char), f"\\{char}", {"+": "-", "/": "_", " ": "+"}.get(char, char)}
    codes = [f"\\u{ord(char):04x}", "".join(f"%{byte:02x}" for byte in char.encode()), f"&#{ord(char)};"]
    return f"(?:{'|'.join([*map(re.escape, sorted(raw)), *(f'(?i:{re.escape(code)})' for code in codes)])})"


def _check_size(body: bytes | bytearray) -> None:
    if len(body) > MOST_BYTES:
        raise OracleError("too-large", f"the response has more than {MOST_BYTES // 2**20} MB")


def _unpacked(body: bytes, encodings: str) -> bytes:
    """Return a body with its encodings (gzip, deflate) undone."""
    names = [name for name in map(str.strip, encodings.lower().split(",")) if name not in ("", "identity")]
    if len(names) > _MOST_ENCODINGS or set(names) - {"gzip", "x-gzip", "deflate"}:
        raise OracleError("transport", f"the response is packed as {encodings[:80]!r}, which PRISM did not ask for")
    for _ in names:
        try:
            body = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, MOST_BYTES + 1)
        except zlib.error as error:
            raise OracleError("transport", f"the response cannot be unpacked ({error})") from None
        _check_size(body)
    return body


def retry_after_s(response: Any, most: float) -> float:
    """Return after how many seconds a busy server (429, 503) wants to be asked again, at most `most`; 0 if unknown.

    The header holds seconds or a date (RFC 9110, 10.2.3).
    """
    if getattr(response, "status_code", 0) not in (429, 503):
        return 0.0
    text = str(response.headers.get("retry-after", "")).strip()
    if text.isdecimal():
        return min(float(text[:9]), most)
    try:
        at = parsedate_to_datetime(text)
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0
    return min(max(seconds, 0.0), most)
