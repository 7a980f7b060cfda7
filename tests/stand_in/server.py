"""`StandIn`: a server in a thread, which queues requests, answers from a function, and fails as its `fault` says."""

import asyncio
import inspect
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Self

from stand_in.brains import Body, Brain, Said, choose_by_hash
from stand_in.decisions import Decisions
from stand_in.faults import AT_ONCE, HELD_BACK, Fault, FaultName, fault_response, spoiled
from stand_in.http import Connection, HttpThread
from stand_in.thoughts import ThinkMode, with_thought
from stand_in.wire import (
    answer_response,
    error_response,
    full_name,
    other_response,
    parsed,
    refusal,
    response,
    shorten,
)

type Latency = float | Callable[[int, Body], float]

_KEPT_REQUESTS = 10_000
_DRIP_S = 0.02


class StandIn:
    """A server that answers as Ollama would (without streams), in a thread of its own.

    An answer holds one of `slots` for `latency`; other requests wait in order of arrival. A slot changes hands at the
    moment its answer was due, however late this thread woke up, so that `slots` and `latency` alone set the throughput.
    A client that hangs up frees its place.

    Args:
        brain: The LLM: a function of the request's body that returns a text or a `Said`. A plain one must be quick, for
            it runs in the server's loop; an async one may take its time.
        models: Names of its LLMs; without a tag, ``:latest``.
        latency: Seconds per answer, or a function of the request's number (from 1) and body.
        fault: One of `FAULTS`, a function of number and body that returns one or None, or None.
        thinks: How it thinks (`THINK_MODES`), and `thought` what.
        context: Tokens that a prompt may have if a request does not say: of a longer one the LLM gets the last half of
            it and 2. None: no limit.
        decisions: How it decides, if it does.
        port: 0 takes a free one, and keeps it over `stop` and `start`.

    Attributes:
        n_requests: Chat requests received; `requests` the first 10,000 bodies.
        max_busy: The most slots that were in use at once.
    """

    def __init__(
        self,
        brain: Brain = choose_by_hash,
        models: Sequence[str] = ("llama3.2:latest",),
        *,
        slots: int = 4,
        latency: Latency = 0.0,
        fault: Fault = None,
        port: int = 0,
        decisions: Decisions | None = None,
        thinks: ThinkMode = "never",
        thought: str = "A person like this reads on.",
        context: int | None = None,
    ) -> None:
        self.brain, self.models = brain, tuple(map(full_name, models))
        self.slots, self.latency, self.fault, self.port = slots, latency, fault, port
        self.decisions, self.thinks, self.thought, self.context = decisions, thinks, thought, context
        self.n_requests = self.busy = self.max_busy = 0
        self.requests: list[Body] = []
        self._waiting: deque[_Job] = deque()
        self._thread: HttpThread | None = None

    @property
    def url(self) -> str:
        """Its address, for ``reasoner.host``."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen; after a `stop`, on the same port. Raises OSError if the port is taken."""
        if self._thread is None:
            listener = socket.create_server(("127.0.0.1", self.port))
            self.port = listener.getsockname()[1]
            self._thread = HttpThread(listener, self._handle)

    def stop(self) -> None:
        """Drop every connection and listen no more; a second call does no harm."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- in the server's thread ------------------------------------------------------------------------

    def _handle(self, connection: Connection, method: str, path: str, content: bytes) -> None:
        decided = self.decisions and self.decisions.response(method, path, content)
        if decided:
            if decided[0]:
                connection.send(decided[0], close=decided[1])
        elif (method, path) == ("POST", "/api/chat"):
            try:
                self._asked(connection, content)
            except Exception as error:  # a user's own fault or latency may fail in any way
                connection.send(error_response(500, f"stand-in: {error!r}"))
        else:
            connection.send(other_response(method, path, content, self.models, self._capabilities, self.context))

    @property
    def _capabilities(self) -> list[str]:
        chats = ["completion"] if self.thinks == "never" else ["completion", "thinking"]
        if self.decisions is None or self.decisions.row == "not a decision model":
            return chats
        return ["decision"] if self.decisions.only else [*chats, "decision"]

    def _asked(self, connection: Connection, content: bytes) -> None:
        body, refused = parsed(content)
        self.n_requests += 1
        if len(self.requests) < _KEPT_REQUESTS:
            self.requests.append(body)
        fault = self.fault(self.n_requests, body) if callable(self.fault) else self.fault
        if fault in AT_ONCE:
            connection.send(fault_response(fault, str(body.get("model"))), close=fault == "dropped")
        elif refused := refused or refusal(body, self.models, thinks=self.thinks != "never"):
            connection.send(refused)
        elif "completion" not in self._capabilities:
            connection.send(error_response(400, f'"{body.get("model")}" does not support chat'))
        else:
            job = _Job(self, connection, shorten(body, self.context), fault)
            connection.on_gone = job.gone
            self._waiting.append(job)
            self.serve(job.came)

    def serve(self, at: float) -> None:
        """Let waiting requests take the slots that are free from the moment `at` on."""
        while self._waiting and self.busy < self.slots:
            job = self._waiting.popleft()
            self.busy += 1
            self.max_busy = max(self.max_busy, self.busy)
            job.begin(max(at, job.came))

    def finish(self, at: float) -> None:
        """Free a slot at the moment `at`."""
        self.busy -= 1
        self.serve(at)

    def withdraw(self, job: "_Job") -> None:
        """Drop a waiting request."""
        self._waiting.remove(job)


class _Job:
    """A request that is to be answered."""

    def __init__(self, server: StandIn, connection: Connection, body: Body, fault: FaultName | None) -> None:
        self.server, self.connection, self.body, self.fault = server, connection, body, fault
        self.number, self.came, self.due = server.n_requests, time.monotonic(), -1.0  # below 0 it waits
        self._next_step: asyncio.Handle | asyncio.Task[None] | None = None

    def begin(self, at: float) -> None:
        """Take a slot; the answer is made at once and sent when it is due."""
        self.due = at
        if self.fault == "drip":
            self.connection.transport.write(response(b"", announced=1_000_000))
            self._drip()
        elif self.fault not in HELD_BACK:
            self._answer(at)

    def gone(self) -> None:
        """Free the place of a client that has hung up."""
        if self._next_step is not None:
            self._next_step.cancel()
        if self.due < 0:
            self.server.withdraw(self)
        else:
            self.server.finish(time.monotonic())

    def _drip(self) -> None:
        self.connection.transport.write(b" ")
        self._next_step = asyncio.get_running_loop().call_later(_DRIP_S, self._drip)

    def _answer(self, at: float) -> None:
        server = self.server
        try:
            self.due = at + (server.latency(self.number, self.body) if callable(server.latency) else server.latency)
            whole = fault_response(self.fault, self.body["model"])
            said = "" if whole else server.brain(self.body)
            if inspect.isawaitable(said):
                self._next_step = asyncio.get_running_loop().create_task(self._await(said))
            else:
                self._send_when_due(whole or self._reply(said))
        except Exception as error:  # a user's own brain may fail in any way
            self._send_when_due(error_response(500, f"stand-in: {error!r}"))

    async def _await(self, answer: Awaitable[str | Said]) -> None:
        try:
            reply = self._reply(await answer)
        except Exception as error:  # likewise
            reply = error_response(500, f"stand-in: {error!r}")
        self.due = max(self.due, time.monotonic())
        self._send_when_due(reply)

    def _reply(self, said: str | Said) -> bytes:
        said = with_thought(said, self.server.thinks, self.server.thought, self.body)
        return answer_response(self.body, spoiled(said, self.fault, self.body), done=self.fault != "not-done")

    def _send_when_due(self, reply: bytes) -> None:
        self._next_step = asyncio.get_running_loop().call_at(self.due, self._send, reply)

    def _send(self, reply: bytes) -> None:
        cut = self.fault == "partial-body"
        self.connection.send(reply[:-10] if cut else reply, close=cut)
        self.server.finish(self.due)
