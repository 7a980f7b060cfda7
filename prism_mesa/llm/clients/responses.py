"""Limits on a server's response: no redirects, at most `MOST_BYTES`, and none of our credentials."""

import base64
import json
import sys
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import quote

from prism_mesa.errors import OracleError

MOST_BYTES: Final = 2**24
"""Bytes of a response after unpacking."""
_SHORTEST: Final = 8
"""Fewest characters of a secret that is masked; shorter ones occur in ordinary answers."""
_MASK: Final = b"***"
_MOST_ENCODINGS: Final = 2


def guarded(http: Mapping[str, Any], hook: type["Guard"], *keys: str) -> dict[str, Any]:
    """Return arguments of an HTTP client (see `urls.credentials`) whose responses a `Guard` reads.

    `keys` are further secrets that the client sends. It asks the server not to compress anything.
    """
    user, password = http.get("auth", ("", ""))
    pair = f"{user}:{password}"
    encoded = base64.b64encode(pair.encode()).decode()
    secrets = [pair, encoded, password, *map(str, http.get("params", {}).values()), *keys]
    hooks = {"response": [hook([secret for secret in secrets if len(secret) >= _SHORTEST])]}
    return {**http, "headers": {"Accept-Encoding": "identity"}, "event_hooks": hooks}


class Guard:
    """Reads the body of a response as soon as it begins to arrive: an event hook of an HTTP client.

    Args:
        secrets: Texts that become ``***`` where a server repeats them.

    Raises:
        OracleError: `http-307`, ... for a redirect, which is not followed; `too-large` for more than `MOST_BYTES`;
            `transport` for a body that cannot be unpacked.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for key in secrets for form in (key, quote(key), quote(key, safe=""), json.dumps(key)[1:-1])}
        forms |= {form.replace("/", "\\/") for form in forms}
        self._secrets = sorted((form.encode() for form in forms), key=len, reverse=True)

    def __call__(self, response: Any) -> None:
        """Read the response of a synchronous client."""
        body = bytearray()
        for block in self._checked(response).stream:
            _add(body, block)
        response.stream.close()
        self._put(response, bytes(body))

    def _checked(self, response: Any) -> Any:
        if 300 <= response.status_code < 400:
            to = self._masked(str(response.headers.get("location", "")).encode()).decode()
            message = f"the server redirects to {to[:200]!r}, which is not followed; give that address if you trust it"
            raise OracleError(f"http-{response.status_code}", message)
        return response

    def _put(self, response: Any, body: bytes) -> None:
        """Give a response its body, unpacked and without secrets."""
        body = self._masked(_unpacked(body, response.headers.get("content-encoding", "")))
        response.headers.pop("content-encoding", None)
        # each of the two HTTP packages takes only a stream of its own
        response.stream = sys.modules[type(response).__module__.partition(".")[0]].ByteStream(body)

    def _masked(self, text: bytes) -> bytes:
        for secret in self._secrets:
            text = text.replace(secret, _MASK)
        return text


class AsyncGuard(Guard):
    """The same for an asynchronous client."""

    async def __call__(self, response: Any) -> None:  # type: ignore[override]
        """Read the response."""
        body = bytearray()
        async for block in self._checked(response).stream:
            _add(body, block)
        await response.stream.aclose()
        self._put(response, bytes(body))


def _add(body: bytearray, block: bytes) -> None:
    body += block
    if len(body) > MOST_BYTES:
        raise _too_large()


def _too_large() -> OracleError:
    return OracleError("too-large", f"the response has more than {MOST_BYTES // 2**20} MB")


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
        if len(body) > MOST_BYTES:
            raise _too_large()
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
