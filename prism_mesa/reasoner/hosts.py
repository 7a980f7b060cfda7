"""Several servers as one client: a question goes to the least busy one, and not to one that is down.

A server counts as down after some failures in a row without an answer in between (a circuit breaker: Nygard 2007,
Release It!). It is then left alone for a while, which doubles each time, and tried again with one question. It
never tries a question twice: whoever asked does.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.reasoner.client import ChatClient, Completion

FIRST_REST_S = 1.0
LONGEST_REST_S = 120.0
UNAVAILABLE = frozenset({"refused", "timeout", "dropped", "busy", "server-error", "transport"})
"""Reasons that say more about the server than about the question."""


@dataclass
class _Host:
    client: ChatClient
    most_failures: int
    busy: int = 0
    failures: int = 0
    rest_s: float = 0.0
    down_until: float = 0.0
    last: str = ""

    @property
    def is_down(self) -> bool:
        return self.failures >= self.most_failures

    def worked(self) -> None:
        self.failures, self.rest_s = 0, 0.0

    def failed(self, reason: str, now: float, took_s: float) -> None:
        """Count a failure; a server that lets one wait for its failures is left alone for longer.

        Questions that were out when it went down fail too, which says nothing new.
        """
        self.failures += 1
        self.last = reason
        if self.is_down and now >= self.down_until:
            self.rest_s = min(max(2 * self.rest_s, 2 * took_s, FIRST_REST_S), LONGEST_REST_S)
            self.down_until = now + self.rest_s


class Hosts:
    """One LLM on one or more servers. It is a `ChatClient` itself.

    Args:
        clients: One for each server, all with the same name, decoding and, as far as it is known, digest.
        failures: After how many in a row a server counts as down. More than the questions that are out at the same
            time, so that one hiccup that takes them all does not close it.
        clock: Seconds, for tests.

    Raises:
        ConfigError: If there is no client.
    """

    def __init__(
        self, clients: Sequence[ChatClient], failures: int = 5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not clients:
            raise ConfigError("reasoner.host: no address; give at least one like http://127.0.0.1:11434")
        self._hosts = [_Host(client, failures) for client in clients]
        self._clock = clock
        self.name = clients[0].name
        self.decoding: dict[str, Any] = clients[0].decoding

    @property
    def clients(self) -> list[ChatClient]:
        """The clients, in the order given."""
        return [host.client for host in self._hosts]

    @property
    def digest(self) -> str:
        """Which build of the LLM the servers have."""
        return str(getattr(self.clients[0], "digest", ""))

    @property
    def server_version(self) -> str:
        """The servers' versions, each once."""
        versions = [str(getattr(client, "server_version", "")) for client in self.clients]
        return ", ".join(dict.fromkeys(filter(None, versions)))

    @property
    def label(self) -> str:
        """What a summary calls them."""
        first = str(getattr(self.clients[0], "label", self.name))
        return first if len(self._hosts) == 1 else f"{first} and {len(self._hosts) - 1} more"

    def check(self) -> None:
        """Make sure that every server answers, and that all have the same build of the LLM.

        Raises:
            ConfigError: If not.
        """
        for client in self.clients:
            check = getattr(client, "check", None)
            if check is not None:
                check()
        digests = {str(getattr(client, "digest", "")): client for client in self.clients}
        if len(digests) > 1:
            told = "; ".join(f"{getattr(client, 'label', '')}: {digest[:12]}" for digest, client in digests.items())
            raise ConfigError(f"reasoner.host: the servers have different builds of {self.name} ({told}): pull it anew")

    async def chat(
        self, prompt: str, schema: dict[str, Any] | None = None, seed_offset: int = 0, top_logprobs: int = 0
    ) -> Completion:
        """Return the answer of the least busy server; ties go to the first.

        Raises:
            OracleError: What the server's client raises, or `circuit-open` if all servers are down.
        """
        host = self._least_busy()
        host.busy += 1
        began = self._clock()
        try:
            said = await host.client.chat(prompt, schema, seed_offset, top_logprobs)
        except OracleError as error:
            if error.reason in UNAVAILABLE:
                host.failed(error.reason, self._clock(), self._clock() - began)
            else:
                host.worked()  # it answers, if not this question
            raise
        finally:
            host.busy -= 1
        host.worked()
        return said

    def _least_busy(self) -> _Host:
        now = self._clock()
        up = [host for host in self._hosts if not host.is_down or (now >= host.down_until and not host.busy)]
        if not up:
            wait_s = max(min(host.down_until for host in self._hosts) - now, 0.0)
            how = f"{self.label}: down ({self._hosts[0].last}); the next question is tried in {wait_s:.0f} s"
            raise OracleError("circuit-open", how)
        return min(up, key=lambda host: (host.busy, host.failures))
