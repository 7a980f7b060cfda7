"""An LLM on a server over HTTP: its address, its connections, limits on its responses, and a name for each failure.

| reason | what happened |
|---|---|
| `refused`, `timeout`, `dropped` | nobody listens there; no complete answer within `timeout_s`; the connection broke |
| `http-404`, ... | the server refused the request (4xx), or redirects (3xx), which is not followed |
| `busy`, `server-error` | 503, its queue is full; another 5xx |
| `too-large`, `transport` | the response has too many bytes; HTTP failed in another way |
| `not-json`, `wrong-shape`, `no-answer` | 200, but no JSON; JSON, but no chat answer; no decision |
| `partial`, `empty`, `thought` | the answer is unfinished, empty, or nothing but a thought |
| `cut-answer`, `cut-prompt` | the answer ran out of tokens; the server read only part of the prompt |
| `unmatched` | the log-probabilities may be those of a thought |
| `refusal`, `wrong-options`, `wrong-numbers`, `contradiction` | a useless decision (`llm.decision`) |
| `circuit-open`, `still-down`, `resting` | all servers are down: not asked; tried in vain; ask again soon |
| `too-long`, `refused-request` | the prompt does not fit the embedded LLM; llama.cpp refuses it |

`llm.dispatcher.may_pass` says after which of them PRISM asks again.
"""

import asyncio
import base64
import html
import ipaddress
import json
import math
import os
import re
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from prism_mesa.errors import ConfigError, OracleError, one_line, redact_credentials
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.clients.decisions import listed_question, read_decision
from prism_mesa.llm.clients.event_loop import Connections
from prism_mesa.llm.text import plain

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx

MOST_BYTES: Final = 2**24
"""Bytes of a response after unpacking."""
CHECK_TIMEOUT_S: Final = 10.0
_LOOK_S: Final = 5.0
_SHORTEST: Final = 8
"""Fewest characters of a secret that is masked; shorter ones occur in ordinary answers."""
_MOST_ENCODINGS: Final = 2
_SHOWN: Final = 200
_PORTS: Final = {"http": 80, "https": 443}


class ServerClient:
    """The common part of clients that ask a server: requests, failures, and decision models.

    Attributes:
        key: The environment variable that holds the server's key. It is read from there only and never recorded.
        digest: Which build of the LLM the server has; `server_version` the server's version. Both empty if unknown.

    Raises:
        ConfigError: If `host` is no address, `model` is empty, or a number or the key is not allowed.
    """

    key: ClassVar[str]
    digest = ""
    server_version = ""

    def __init__(self, model: str, host: str, timeout_s: float, decoding: dict[str, Any]) -> None:
        if not model.strip():
            raise ConfigError("reasoner.model: empty; give the name of an LLM, as in 'ollama list'")
        if not 0 < timeout_s < math.inf:
            raise ConfigError(f"reasoner.timeout_s: {timeout_s} is not a number of seconds above 0")
        if not 0 <= decoding["temperature"] < math.inf:
            raise ConfigError(f"reasoner.temperature: {decoding['temperature']} is below 0 or no number")
        self._read_key()
        self.name, self.host, self.timeout_s, self.decoding = model, server_address(host), timeout_s, decoding
        self._credentials = credentials(host)
        self._decision_paths: tuple[str, ...] = ("/v1/systemone", "/v1/decisions")
        self._connections, self._mask = Connections(self._connect), Mask(())

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self.host}>"

    @property
    def label(self) -> str:
        """Its name in a summary."""
        return f"{self.name} at {self.host}"

    @property
    def root(self) -> str:
        """The server's address without the path of its API."""
        return self.host.removesuffix("/v1") if self.host.endswith("/v1") else self.host.removesuffix("/api")

    def _read_key(self) -> str:
        key = os.environ.get(self.key, "").strip()
        if not key.isascii() or not (key.isprintable() and " " not in key):
            raise ConfigError(f"{self.key}: holds characters that no key has (white space, or no ASCII): set it anew")
        return key

    def _http(self) -> dict[str, Any]:
        """Return the arguments of the HTTP client."""
        from httpx import Limits

        headers, key = {"Accept-Encoding": "identity"}, self._read_key()
        # No connection is kept without TLS, as the rest of one response may look like the next.
        limits = Limits(max_connections=None, max_keepalive_connections=None if self.host.startswith("https:") else 0)
        return {
            "timeout": self.timeout_s,
            "limits": limits,
            "headers": headers | ({"Authorization": f"Bearer {key}"} if key else {}),
            "trust_env": not is_local(self.host),
            "verify": _trusted_certificates(),
            **self._credentials,
        }

    def _connect(self) -> "httpx.AsyncClient":
        from httpx import AsyncClient

        user, password = self._credentials.get("auth", ("", ""))
        query = self._credentials.get("params", {}).values()
        self._mask = Mask([f"{user}:{password}", password, *query, self._read_key()])
        return AsyncClient(**self._http())

    async def request(self, url: str, body: Any = None, timeout_s: float | None = None) -> Any:
        """Return the JSON of the server's response to a request: POST with a body, else GET.

        Raises:
            OracleError: If there is none; see the table above.
        """
        return self._json(await self._send(url, body, timeout_s))

    def _json(self, response: "Response") -> Any:
        if response.status_code >= 300:
            raise self._refusal(response)
        try:
            return json.loads(response.body)
        except (ValueError, RecursionError):
            raise OracleError("not-json", f"{self.label}: the answer is no JSON") from None

    async def _send(self, url: str, body: Any, timeout_s: float | None = None) -> "Response":
        import httpx

        timeout_s = self.timeout_s if timeout_s is None else min(self.timeout_s, timeout_s)
        http = await self._connections.client()
        try:
            async with asyncio.timeout(timeout_s):
                async with http.stream("GET" if body is None else "POST", url, json=body) as response:
                    return await self._read(response)
        except OracleError as error:
            reason, fault = error.reason, str(error)
        except (TimeoutError, httpx.TimeoutException):
            reason, fault = "timeout", f"no answer within {timeout_s:g} s"
        except httpx.ConnectError as error:
            is_unknown = re.search("Name or service|name resolution|nodename", str(error.__context__ or error))
            reason, fault = "refused", "the name is unknown" if is_unknown else "connection refused"
        except (httpx.NetworkError, httpx.ProtocolError) as error:
            reason, fault = "dropped", f"the connection broke ({error})"
        except httpx.HTTPError as error:
            reason, fault = "transport", f"{type(error).__name__}: {error}"
        raise OracleError(reason, f"{self.label}: {fault}")

    async def _read(self, response: "httpx.Response") -> "Response":
        """Return a response whose body is unpacked and without secrets."""
        if 300 <= response.status_code < 400:
            place = self._mask(str(response.headers.get("location", "")).encode()).decode()[:_SHOWN]
            fault = f"the server redirects to {place!r}, which is not followed; give that address if you trust it"
            raise OracleError(f"http-{response.status_code}", fault)
        body = bytearray()
        async for block in cast("Any", response.stream):
            body += block
            _check_size(body)
        unpacked = _unpacked(bytes(body), response.headers.get("content-encoding", ""))
        return Response(response.status_code, response.headers, self._mask(unpacked))

    def _refusal(self, response: "Response") -> OracleError:
        status, reason = response.status_code, status_reason(response.status_code)
        fault = f"{self.label}: the server says {response.error_text()} (status {status})"
        return OracleError(reason, fault, retry_after_s=retry_after_s(response, self.timeout_s))

    def _unshaped(self) -> OracleError:
        return OracleError("wrong-shape", f"{self.label}: the answer is JSON, but no chat answer")

    async def decide(self, state: str, question: Mapping[str, Any]) -> Completion:
        """Return ``{"model": ..., "answer": ...}`` (see `llm.decision`).

        Raises:
            OracleError: With one of the reasons of the table above.
        """
        started = time.perf_counter()
        response = await self._send_decision(state, question)
        if response.status_code == 501:
            raise OracleError("refused-request", str(self._refusal(response)))
        if response.status_code >= 300:
            raise self._refusal(response)
        latency_ms = (time.perf_counter() - started) * 1000
        return read_decision(response.body.decode("utf-8", "replace"), self.label, latency_ms, state, self.decoding)

    async def _send_decision(self, state: str, question: Mapping[str, Any]) -> "Response":
        """Post the question to the path that answers decisions, and remember that path."""
        for path in self._decision_paths:
            body: dict[str, Any] = {"input": state, "questions": [listed_question(question)]}
            if path == "/v1/systemone":
                body = {"state": state, "questions": {"answer": question}, **self._decision_options()}
            response = await self._send(f"{self.root}{path}", {"model": self.name, **body})
            fault = response.error_text() if response.body.lstrip().startswith(b"{") else ""
            if response.status_code not in (404, 405) or "model" in fault.lower():  # there is no such model
                self._decision_paths = (path,) if response.status_code < 300 else self._decision_paths
                return response
        fault = "the server lacks /v1/systemone and /v1/decisions (Ollama 0.35, llama.cpp): set reasoner.answer=choice"
        raise OracleError("http-404", f"{self.label}: {fault}")

    def _decision_options(self) -> dict[str, Any]:
        """Return further fields of a request to `/v1/systemone`."""
        return {}

    async def capabilities(self, *models: str) -> list[frozenset[str]]:
        """Return what LLMs on an Ollama server can do (`completion`, `decision`); empty sets if it does not say."""

        async def show(model: str) -> frozenset[str]:
            with suppress(OracleError, AttributeError, TypeError):
                reply = await self.request(f"{self.root}/api/show", {"model": model}, _LOOK_S)
                return frozenset(map(str, reply.get("capabilities", ())))
            return frozenset()

        return await asyncio.gather(*map(show, models))

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        await self._connections.aclose()


@dataclass(frozen=True)
class Response:
    """A server's response."""

    status_code: int
    headers: Mapping[str, str]
    body: bytes

    def error_text(self, cap: int = _SHOWN) -> str:
        """Return the error that the server sent, as one line."""
        try:
            error = json.loads(self.body)
        except (ValueError, RecursionError):
            error = self.body.decode("utf-8", "replace")
        for name in ("error", "message", "detail"):
            error = error.get(name, error) if isinstance(error, dict) else error
        return plain(error, cap)


class Mask:
    """Replaces secrets by ``***`` where a server repeats them, also in base64 or escaped."""

    def __init__(self, secrets: Iterable[str]) -> None:
        packed = {str(secret): base64.b64encode(str(secret).encode()).decode().rstrip("=") for secret in secrets}
        forms = [form for pair in packed.items() for form in pair if len(form) >= _SHORTEST]
        patterns = ("".join(map(_escaped, form)) for form in sorted(forms, key=len, reverse=True))
        self._secrets = re.compile("|".join(patterns).encode() or b"(?!)")

    def __call__(self, text: bytes) -> bytes:
        """Return a text without the secrets."""
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


def status_reason(status: int) -> str:
    """Return the reason of an `OracleError` for the HTTP status with which a server refuses."""
    return "busy" if status == 503 else "server-error" if status >= 500 else f"http-{status}"


def retry_after_s(response: Any, most: float) -> float:
    """Return the seconds after which a busy server (429, 503) wants to be asked again, at most `most`; 0 if unknown.

    The header holds seconds or a date (RFC 9110, 10.2.3).
    """
    if response.status_code not in (429, 503):
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


def is_local(host: str) -> bool:
    """Return whether `host` is this machine; as in Ollama's own program, no proxy is then used."""
    name = urlsplit(host).hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def server_address(host: str) -> str:
    """Return `host` as ``scheme://name:port/path``, by Ollama's own rule for a missing scheme or port.

    It leaves out user, password and query: this is the address in messages and files (see `credentials`).

    Raises:
        ConfigError: If it is no address.
    """
    try:
        parts = urlsplit(host.strip() if "://" in host else f"http://{host.strip()}")
        name = (parts.hostname or "").encode("idna").decode()
        port = parts.port or (_PORTS[parts.scheme] if "://" in host else 11434)
    except (ValueError, KeyError):
        name, port = "", 0
    if not name or parts.scheme not in _PORTS or any(char.isspace() for char in name):
        shown = redact_credentials(f"host={host}").removeprefix("host=")
        raise ConfigError(f"reasoner.host: {shown!r} is no address; give one like http://127.0.0.1:11434")
    shown = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{shown}:{port}{parts.path.rstrip('/')}"


def credentials(host: str) -> dict[str, Any]:
    """Return the parts of an address that only its server may see, as arguments of an HTTP client.

    >>> credentials("http://me:p%40ss@127.0.0.1:11434?api_key=abc")
    {'auth': ('me', 'p@ss'), 'params': {'api_key': 'abc'}}
    """
    parts = urlsplit(host.strip() if "://" in host else f"http://{host.strip()}")
    user = {"auth": (unquote(parts.username), unquote(parts.password or ""))} if parts.username is not None else {}
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return user | ({"params": query} if query else {})


@cache
def _trusted_certificates() -> "SSLContext":
    """Return the trusted certificates, read once in a process: that takes longer than to ask a server."""
    import httpx

    return httpx.create_ssl_context()
