"""Several servers as one client: each question goes to the least busy server that is up.

A server counts as down after some failures in a row (a circuit breaker: Nygard 2007, Release It!). While other servers
answer, it rests, and then gets one question as a test. Each rest is twice as long as the rest before. If all servers
are down, the pool sends one question as a test after twice the duration of a failure. The dispatcher repeats failed
questions; the pool does not.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm.clients.base import ChatClient, Completion, Schema, client_digest, client_label

FIRST_REST_S = 1.0
MIN_REST_S = 0.01
MAX_REST_S = 120.0
_POLL_S = 0.005
UNAVAILABLE = frozenset({"refused", "timeout", "dropped", "busy", "server-error", "transport"})
"""Reasons that concern the server rather than the question."""


@dataclass
class _Host:
    client: ChatClient
    max_failures: int
    n_questions: int = 0
    failures: int = 0
    rest_s: float = 0.0
    down_until: float = 0.0
    retry_at: float = 0.0
    last_reason: str = ""

    @property
    def is_down(self) -> bool:
        return self.failures >= self.max_failures

    def note_failure(self, reason: str, now: float, duration_s: float) -> None:
        """Count a failure. Questions that were sent before the server went down do not lengthen its rest."""
        self.failures += 1
        self.last_reason = reason
        if self.is_down:
            self.retry_at = now + min(max(2 * duration_s, MIN_REST_S), MAX_REST_S)
        if self.is_down and now >= self.down_until:
            self.rest_s = min(max(2 * self.rest_s, 2 * duration_s, FIRST_REST_S), MAX_REST_S)
            self.down_until = now + self.rest_s


class HostPool:
    """A `ChatClient` for one LLM on one or more servers.

    Args:
        clients: One client for each server (at least one), all with the same name and decoding.
        failures: Failures in a row after which a server counts as down. Choose a number above that of concurrent
            questions, so that one short fault is not enough.
        grace_s: Seconds after all servers went down during which failed questions may be asked again.
        patience_s: Seconds that a question waits for the result of a test.
        clock: A function that returns the time in seconds; tests can replace it.
    """

    def __init__(
        self,
        clients: Sequence[ChatClient],
        failures: int = 5,
        grace_s: float = 5.0,
        patience_s: float = 0.25,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not clients:
            raise ConfigError("reasoner.host: no address; give at least one like http://127.0.0.1:11434")
        self.clients = list(clients)
        self._hosts = [_Host(client, failures) for client in clients]
        self._grace_s, self._polls = grace_s, round(patience_s / _POLL_S)
        self._down_since: float | None = None
        self._clock = clock
        self.name = clients[0].name
        self.decoding: dict[str, Any] = clients[0].decoding

    @property
    def digest(self) -> str:
        """The LLM's build on the servers."""
        return client_digest(self.clients[0])

    @property
    def server_version(self) -> str:
        """The distinct versions of the servers."""
        versions = [str(getattr(client, "server_version", "")) for client in self.clients]
        return ", ".join(dict.fromkeys(filter(None, versions)))

    @property
    def label(self) -> str:
        """The servers' name in summaries."""
        first = client_label(self.clients[0])
        return first if len(self._hosts) == 1 else f"{first} and {len(self._hosts) - 1} more"

    def check(self, *, needs_decisions: bool = False) -> None:
        """Check that all servers answer and have the same build of the LLM. Raises ConfigError if not."""
        for client in self.clients:
            check = getattr(client, "check", None)
            if check is not None:
                check(needs_decisions=True) if needs_decisions else check()
        digests = {client_digest(client): client for client in self.clients}
        if len(digests) > 1:
            builds = "; ".join(f"{client_label(client)}: {digest[:12]}" for digest, client in digests.items())
            fault = f"the servers have different builds of {self.name} ({builds}): pull it again"
            raise ConfigError(f"reasoner.host: {fault}")

    async def chat(self, prompt: str, schema: Schema = None, seed_offset: int = 0, top_logprobs: int = 0) -> Completion:
        """Return the answer of the least busy server."""
        return await self._answer(lambda client: client.chat(prompt, schema, seed_offset, top_logprobs))

    async def decide(self, state: str, question: Mapping[str, Any]) -> Completion:
        """Return the decision of the least busy server."""
        return await self._answer(lambda client: cast("Any", client).decide(state, question))

    async def _answer(self, ask: Callable[[ChatClient], Awaitable[Completion]]) -> Completion:
        """Return the answer of the least busy server. Raises OracleError if it fails, or if all servers are down."""
        host = await self._free_host()
        host.n_questions += 1
        started, is_retry = self._clock(), self._all_down
        try:
            completion = await ask(host.client)
        except OracleError as error:
            if error.reason not in UNAVAILABLE or error.retry_after_s:
                self._note_success(host)  # the server is up, although it refuses this question
                raise
            host.note_failure(error.reason, self._clock(), self._clock() - started)
            if self._all_down and self._down_since is None:
                self._down_since = self._clock()
            if is_retry:
                raise OracleError("resting" if self._may_come_back else "still-down", str(error)) from error
            raise
        finally:
            host.n_questions -= 1
        self._note_success(host)
        return completion

    def _note_success(self, host: _Host) -> None:
        host.failures, host.rest_s, self._down_since = 0, 0.0, None

    @property
    def _may_come_back(self) -> bool:
        return self._down_since is None or self._clock() - self._down_since < self._grace_s

    @property
    def _all_down(self) -> bool:
        return all(host.is_down for host in self._hosts)

    async def _free_host(self) -> _Host:
        """Return the server to ask. If all servers are down, first wait a moment for the result of a test."""
        failures = self._failures
        for poll in range(self._polls + 1):
            host = self._least_busy()
            if host is not None:
                return host
            if poll == self._polls or self._failures != failures:
                break
            await asyncio.sleep(_POLL_S)
        reason = "resting" if self._may_come_back else "circuit-open"
        raise OracleError(reason, f"{self.label}: down ({self._hosts[0].last_reason})", calls=0)

    @property
    def _failures(self) -> int:
        return sum(host.failures for host in self._hosts)

    def _least_busy(self) -> _Host | None:
        """Return the server to ask next; None if all servers are down and none is due for a test."""
        now = self._clock()
        due_hosts = [host for host in self._hosts if host.is_down and not host.n_questions and now >= host.down_until]
        if due_hosts and not self._all_down:
            return due_hosts[0]
        hosts_up = [host for host in self._hosts if not host.is_down]
        hosts_up = hosts_up or [host for host in self._hosts if not host.n_questions and now >= host.retry_at]
        return min(hosts_up, key=lambda host: (host.n_questions, host.failures), default=None)
