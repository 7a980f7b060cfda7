"""Clients of servers over HTTP: addresses, connections, limits on responses, and a reason for each failure.

| reason | what happened |
|---|---|
| `refused`, `timeout` | no connection; no answer in time |
| `dropped`, `transport` | the connection broke; another HTTP error |
| `http-404`, `busy`, `server-error` | a refusal (3xx, 4xx); a full queue (503); another fault of the server (5xx) |
| `not-json`, `wrong-shape`, `no-answer` | the response is not JSON; not a chat answer; not a decision |
| `too-large`, `partial`, `empty` | the response has too many bytes; the answer is incomplete; it is empty |
| `thought`, `unmatched` | the answer is only a thought; the log-probabilities may belong to a thought |
| `cut-answer`, `cut-prompt` | the answer reached the limit of tokens; the server read only part of the prompt |
| `refusal`, `wrong-options`, `wrong-numbers`, `contradiction` | a useless decision (`llm.decision`) |
| `circuit-open`, `still-down`, `resting` | all servers are down: not asked; asked without success; to be asked again |
| `too-long`, `refused-request` | the prompt does not fit the embedded LLM; llama.cpp refuses it |

`llm.dispatcher.is_temporary` defines the reasons after which PRISM asks again.
"""

import asyncio
import base64
import ipaddress
import json
import logging
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from prism_mesa.errors import ConfigError, OracleError, one_line, redact_credentials
from prism_mesa.llm.clients.base import Completion, timed
from prism_mesa.llm.clients.completions import likeliest_tokens, strip_thought, was_cut
from prism_mesa.llm.clients.decisions import openai_question, read_decision
from prism_mesa.llm.clients.event_loop import Connections
from prism_mesa.llm.text import clean_text

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx

MAX_BYTES: Final = 2**24
"""Maximum size of an unpacked response, in bytes."""
CHECK_TIMEOUT_S: Final = 10.0
_SHOW_TIMEOUT_S: Final = 5.0
_MIN_SECRET: Final = 8
"""Minimum length of a secret to mask. Shorter strings occur in ordinary answers."""
_MAX_CHARS: Final = 200
_PORTS: Final = {"http": 80, "https": 443}
_MIN_CONTEXT: Final = 4096
"""Ollama's minimum context, in tokens."""

logger = logging.getLogger("prism_mesa.llm")


class ServerClient:
    """The base class of clients that ask a server: requests, failures, and decision models.

    Attributes:
        key_variable: The environment variable with the server's key, which is never recorded.
        more_context: The setting with which the context has {0} tokens, for errors.
        digest: The LLM's build on the server; empty if unknown.
        server_version: The server's version; empty if unknown.

    Raises:
        ConfigError: If `host` is not an address, `model` is empty, or a number or the key is not allowed.
    """

    key_variable: ClassVar[str]
    more_context: ClassVar[str]
    digest = ""
    server_version = ""

    def __init__(self, model: str, host: str, timeout_s: float, decoding: dict[str, Any]) -> None:
        if not model.strip():
            raise ConfigError("reasoner.model: empty; give the name of an LLM, as in 'ollama list'")
        if not 0 < timeout_s < math.inf:
            raise ConfigError(f"reasoner.timeout_s: {timeout_s} is not a number of seconds above 0")
        if not 0 <= decoding["temperature"] < math.inf:
            raise ConfigError(f"reasoner.temperature: {decoding['temperature']} is not a number from 0")
        self._read_key()
        self.name, self.host, self.timeout_s, self.decoding = model, server_address(host), timeout_s, decoding
        self._credentials = credentials(host)
        self._warned_of_cuts = False
        self._decision_paths: tuple[str, ...] = ("/v1/systemone", "/v1/decisions")
        self._connections, self._secrets = Connections(self._connect), re.compile(b"(?!)")

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self.host}>"

    @property
    def label(self) -> str:
        """The client's name in summaries."""
        return f"{self.name} at {self.host}"

    @property
    def root(self) -> str:
        """The server's address without the path of its API."""
        return self.host.removesuffix("/v1") if self.host.endswith("/v1") else self.host.removesuffix("/api")

    def _read_key(self) -> str:
        key = os.environ.get(self.key_variable, "").strip()
        if not key.isascii() or not (key.isprintable() and " " not in key):
            raise ConfigError(f"{self.key_variable} has white space or non-ASCII characters: set it again")
        return key

    def _client_options(self) -> dict[str, Any]:
        from httpx import Limits

        key = self._read_key()
        # Without TLS, do not reuse connections: unread bytes of a response may look like the next response.
        keepalive = None if self.host.startswith("https:") else 0
        return {
            "timeout": self.timeout_s,
            "limits": Limits(max_connections=None, max_keepalive_connections=keepalive),
            "headers": {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {key}"} if key else {}),
            "trust_env": not is_local(self.host),
            "verify": _trusted_certificates(),
            **self._credentials,
        }

    def _connect(self) -> "httpx.AsyncClient":
        from httpx import AsyncClient

        user, password = self._credentials.get("auth", ("", ""))
        query = self._credentials.get("params", {}).values()
        self._secrets = secrets_pattern([f"{user}:{password}", password, *query, self._read_key()])
        return AsyncClient(**self._client_options())

    async def request(self, url: str, body: Any = None, timeout_s: float | None = None) -> Any:
        """Send a request (POST with a body, else GET) and return the response's JSON value."""
        return self._parse_json(await self._send(url, body, timeout_s))

    def _parse_json(self, response: "Response") -> Any:
        if response.status_code >= 300:
            raise self._refusal(response)
        try:
            return json.loads(response.body)
        except (ValueError, RecursionError):
            raise OracleError("not-json", f"{self.label}: the answer is not JSON") from None

    async def _send(self, url: str, body: Any, timeout_s: float | None = None) -> "Response":
        import httpx

        timeout_s = self.timeout_s if timeout_s is None else min(self.timeout_s, timeout_s)
        http = await self._connections.client()
        try:
            async with asyncio.timeout(timeout_s):
                async with http.stream("GET" if body is None else "POST", url, json=body) as response:
                    return await self._read_response(response)
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

    async def _read_response(self, response: "httpx.Response") -> "Response":
        """Return a response with its body unpacked and secrets masked."""
        if 300 <= response.status_code < 400:
            url = self._secrets.sub(b"***", str(response.headers.get("location", "")).encode()).decode()[:_MAX_CHARS]
            fault = f"the server redirects to {url!r}, which is not followed; give that address if you trust it"
            raise OracleError(f"http-{response.status_code}", fault)
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity", "gzip", "deflate"):
            raise OracleError("transport", f"the response is packed as {encoding[:80]!r}, which PRISM did not ask for")
        body = bytearray()
        async for block in response.aiter_bytes():
            body += block
            if len(body) > MAX_BYTES:
                raise OracleError("too-large", f"the response has more than {MAX_BYTES // 2**20} MB")
        return Response(response.status_code, response.headers, self._secrets.sub(b"***", bytes(body)))

    def _refusal(self, response: "Response") -> OracleError:
        status = response.status_code
        reason = "busy" if status == 503 else "server-error" if status >= 500 else f"http-{status}"
        fault = f"{self.label}: the server says {response.error_text()} (status {status})"
        return OracleError(reason, fault, retry_after_s=retry_after_s(response, self.timeout_s))

    def _shape_error(self) -> OracleError:
        return OracleError("wrong-shape", f"{self.label}: the answer is JSON, but not a chat answer")

    def _refuse_cut_prompt(self, prompt: str, token_counts: tuple[int, int], context: int = 0) -> None:
        """Raise OracleError if the server cut the prompt. With ``cut_prompts: accept``, log the first cut instead."""
        if not was_cut(prompt, token_counts[0], context):
            return
        tokens_needed = len(prompt.encode("utf-8", "replace")) // 2 + int(self.decoding["max_tokens"])
        remedy = self.more_context.format(max(_MIN_CONTEXT, 1 << tokens_needed.bit_length(), 2 * context))
        event = f"the server cut the prompt to its last {token_counts[0]} tokens ({len(prompt)} characters)"
        fault = f"{self.label}: {event}: {remedy}"
        if self.decoding.get("cut_prompts") != "accept":
            raise OracleError("cut-prompt", fault, tokens=token_counts)
        if not self._warned_of_cuts:
            logger.warning("%s (reasoner.cut_prompts=accept keeps such answers)", fault)
        self._warned_of_cuts = True

    def _completion(
        self, message: Any, logprobs: Sequence[Mapping[str, Any]], token_counts: tuple[int, int], *, truncated: bool
    ) -> Completion:
        try:
            text = message.get("content") or ""
            thought = message.get("thinking") or message.get("reasoning") or message.get("reasoning_content")
            completion = Completion(text, *token_counts, top_logprobs=likeliest_tokens(logprobs), truncated=truncated)
            tokens = [str(position["token"]) for position in logprobs]
            text.strip()
        except (LookupError, TypeError, AttributeError, ValueError):
            raise self._shape_error() from None
        return strip_thought(self.label, completion, thought=thought, tokens=tokens, decoding=self.decoding)

    @timed
    async def decide(self, state: str, question: Mapping[str, Any]) -> Completion:
        """Return ``{"model": ..., "answer": ...}`` (see `llm.decision`)."""
        response = await self._send_decision(state, question)
        if response.status_code == 501:
            raise OracleError("refused-request", str(self._refusal(response)))
        if response.status_code >= 300:
            raise self._refusal(response)
        return read_decision(response.body.decode("utf-8", "replace"), self.label, state, self.decoding)

    async def _send_decision(self, state: str, question: Mapping[str, Any]) -> "Response":
        """Post the question to the path for decisions. Try two paths, and remember the one that works."""
        for path in self._decision_paths:
            body: dict[str, Any] = {"input": state, "questions": [openai_question(question)]}
            if path == "/v1/systemone":
                body = {"state": state, "questions": {"answer": question}, **self._decision_options()}
            response = await self._send(f"{self.root}{path}", {"model": self.name, **body})
            fault = response.error_text() if response.body.lstrip().startswith(b"{") else ""
            # the path exists unless the error is about the path
            if response.status_code not in (404, 405) or "model" in fault.lower():
                self._decision_paths = (path,) if response.status_code < 300 else self._decision_paths
                return response
        fault = "the server lacks /v1/systemone and /v1/decisions (Ollama 0.35, llama.cpp): set reasoner.answer=choice"
        raise OracleError("http-404", f"{self.label}: {fault}")

    def _decision_options(self) -> dict[str, Any]:
        return {}

    async def capabilities(self, *models: str) -> list[frozenset[str]]:
        """Return the capabilities (such as `completion`) of LLMs on an Ollama server; empty sets if unknown."""

        async def show(model: str) -> frozenset[str]:
            with suppress(OracleError, AttributeError, TypeError):
                reply = await self.request(f"{self.root}/api/show", {"model": model}, _SHOW_TIMEOUT_S)
                return frozenset(map(str, reply.get("capabilities", ())))
            return frozenset()

        return await asyncio.gather(*map(show, models))


@dataclass(frozen=True)
class Response:
    """A response of a server."""

    status_code: int
    headers: Mapping[str, str]
    body: bytes

    def error_text(self, cap: int = _MAX_CHARS) -> str:
        """Return the server's error message on one line."""
        try:
            error = json.loads(self.body)
        except (ValueError, RecursionError):
            error = self.body.decode("utf-8", "replace")
        for name in ("error", "message", "detail"):
            error = error.get(name, error) if isinstance(error, dict) else error
        return clean_text(error, cap)


def secrets_pattern(secrets: Iterable[str]) -> re.Pattern[bytes]:
    """Return a pattern that matches secrets as plain text and in the notations of base64, JSON and addresses."""
    spellings: set[str] = set()
    for secret in secrets:
        encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
        spellings |= {secret, encoded, json.dumps(secret)[1:-1], quote(secret, safe="")}
    by_length = sorted((text for text in spellings if len(text) >= _MIN_SECRET), key=lambda text: (-len(text), text))
    return re.compile("|".join(map(re.escape, by_length)).encode() or b"(?!)")


def retry_after_s(response: Any, max_s: float) -> float:
    """Return the seconds to wait according to a busy server (RFC 9110, 10.2.3), at most `max_s`; 0 if unknown."""
    text = str(response.headers.get("retry-after", "")).strip() if response.status_code in (429, 503) else ""
    if text.isdecimal():
        return min(float(text[:9]), max_s)
    try:
        date = parsedate_to_datetime(text)
        seconds = (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError, OverflowError, IndexError):
        return 0.0
    return min(max(seconds, 0.0), max_s)


def is_local(host: str) -> bool:
    """Return whether `host` is this machine. As in Ollama's client, requests to it use no proxy."""
    name = urlsplit(host).hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def server_address(host: str) -> str:
    """Return `host` as ``scheme://name:port/path``, with Ollama's defaults for a missing scheme or port.

    User, password and query are omitted (see `credentials`). Raises ConfigError if `host` is not an address.
    """
    try:
        parts = _split_address(host)
        name = (parts.hostname or "").encode("idna").decode()
        port = parts.port or (_PORTS[parts.scheme] if "://" in host else 11434)
    except (ValueError, KeyError):
        name, port = "", 0
    if not name or parts.scheme not in _PORTS or any(char.isspace() for char in name):
        redacted = redact_credentials(f"host={host}").removeprefix("host=")
        raise ConfigError(f"reasoner.host: {redacted!r} is not an address; give one like http://127.0.0.1:11434")
    bracketed = f"[{name}]" if ":" in name else name  # an IPv6 address
    return f"{parts.scheme}://{bracketed}:{port}{parts.path.rstrip('/')}"


def _split_address(host: str) -> SplitResult:
    return urlsplit(host.strip() if "://" in host else f"http://{host.strip()}")


def credentials(host: str) -> dict[str, Any]:
    """Return the secret parts of an address as arguments for an HTTP client.

    >>> credentials("http://me:p%40ss@127.0.0.1:11434?api_key=abc")
    {'auth': ('me', 'p@ss'), 'params': {'api_key': 'abc'}}
    """
    parts = _split_address(host)
    user = {"auth": (unquote(parts.username), unquote(parts.password or ""))} if parts.username is not None else {}
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return user | ({"params": query} if query else {})


@cache
def _trusted_certificates() -> "SSLContext":
    """Return the trusted certificates. They are read once per process, because reading is slower than a request."""
    import httpx

    return httpx.create_ssl_context()
