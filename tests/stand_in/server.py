"""`StandIn`: a server in a thread, which queues requests, answers from a function, and fails as its `fault` says."""

import asyncio
import inspect
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

from stand_in.brains import Body, Brain, Said, choose_by_hash
from stand_in.decisions import Decisions
from stand_in.faults import (
    AT_ONCE,
    HELD_BACK,
    Fault,
    FaultName,
    check_fault,
    fault_response,
    spoiled,
)
from stand_in.http import Connection, HttpThread
from stand_in.slots import AnswerSlots
from stand_in.thoughts import ThinkMode, with_thought
from stand_in.wire import (
    BUSY,
    Ending,
    Times,
    answer_response,
    error_response,
    full_name,
    loading_response,
    only_loads,
    other_response,
    parsed,
    refusal,
    response,
    shortened,
)

type Latency = float | Callable[[int, Body], float]

_KEPT_REQUESTS = 10_000
_KEEP_ALIVE_S = 300.0
_DRIP_S = 0.02
_ASKING = ("/api/chat", "/api/generate")


class StandIn:
    """A server that answers as Ollama would, in a thread of its own.

    An answer holds one of `slots` for `latency`; who finds none waits in order of arrival, and is told 503
    if `queue` others wait. A slot that changes hands does so at the moment its answer was due, however late
    this thread woke up, so that `slots` and `latency` alone set the throughput. A client that hangs up
    frees its place.

    Args:
        brain: What the LLM says: a function of the request's body that returns a text or a `Said`. A plain
            one must be quick, for it runs in the server's loop; an async one may take its time.
        models: The LLMs it has; without a tag, ``:latest``.
        latency: Seconds per answer, or a function of the request's number (from 1) and body.
        fault: What goes wrong: one of `FAULTS`, a function of number and body that names one or returns
            None, or None.
        thinks: How it thinks (`THINK_MODES`), and `thought` what.
        context: Tokens that a prompt may have where a request does not say: of a longer one the LLM gets the last
            half of it and 2. None: as many as it likes.
        decisions: How it decides, if it does.
        port: 0 takes a free one, and keeps it over `stop` and `start`.

    Attributes:
        n_requests: Chat and generate requests received.
        requests: Their bodies, the first 10,000.

    >>> import ollama
    >>> with StandIn() as server, ollama.Client(server.url, trust_env=False) as client:
    ...     reply = client.generate("llama3.2", "Which?", format={"enum": ["like", "reply"]})
    >>> reply.response, server.n_requests
    ('"reply"', 1)
    """

    def __init__(
        self,
        brain: Brain = choose_by_hash,
        models: Sequence[str] = ("llama3.2:latest",),
        *,
        slots: int = 4,
        queue: int = 512,
        latency: Latency = 0.0,
        fault: Fault = None,
        port: int = 0,
        decisions: Decisions | None = None,
        thinks: ThinkMode = "never",
        thought: str = "A person like this reads on.",
        context: int | None = None,
    ) -> None:
        self.brain = brain
        self.models = tuple(full_name(name) for name in models)
        self.latency = latency
        self.fault = fault
        self.port = port
        self.decisions = decisions
        self.thinks = thinks
        self.thought = thought
        self.context = context
        self.n_requests = 0
        self.requests: list[Body] = []
        self._slots = AnswerSlots(slots, queue)
        self._loaded: dict[str, float] = {}
        self._held_back: set[_Job] = set()
        self._thread: HttpThread | None = None

    @property
    def url(self) -> str:
        """Its address, for `ollama.Client` or ``reasoner.host``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def max_busy(self) -> int:
        """The most slots that were in use at once."""
        return self._slots.max_busy

    @property
    def n_waiting(self) -> int:
        """How many wait for a slot at the moment."""
        return self._slots.n_waiting

    @property
    def fault(self) -> Fault:
        """What goes wrong with the requests that arrive from now on."""
        return self._fault

    @fault.setter
    def fault(self, fault: Fault) -> None:
        check_fault(fault)
        self._fault = fault

    def start(self) -> None:
        """Listen; after a `stop`, on the same port.

        Raises:
            OSError: If the port is taken.
        """
        if self._thread is None:
            listener = socket.create_server(("127.0.0.1", self.port))
            self.port = listener.getsockname()[1]
            self._thread = HttpThread(listener, self._handle)

    def stop(self) -> None:
        """Die: drop every connection and listen no more. Doing it twice does no harm."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None
            self._loaded.clear()

    def release(self) -> None:
        """Let go what `timeout` and `drip` hold back: the first is answered, the second dropped."""
        if self._thread is not None:
            self._thread.call(self._release)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- in the server's thread ------------------------------------------------------------------------

    def _release(self) -> None:
        for job in tuple(self._held_back):
            job.release()

    def _handle(self, connection: Connection, method: str, path: str, content: bytes) -> None:
        decided = self.decisions and self.decisions.response(method, path, content)
        if decided:
            if decided[0]:
                connection.send(decided[0], close=decided[1])
        elif method == "POST" and path in _ASKING:
            try:
                self._asked(connection, path, content)
            except Exception as error:  # a user's own fault or latency may fail in any way
                connection.send(error_response(500, f"stand-in: {error!r}"))
        else:
            can = self._capabilities
            connection.send(other_response(method, path, content, self.models, self._loaded, can, self.context))

    @property
    def _capabilities(self) -> list[str]:
        chats = ["completion"] if self.thinks == "never" else ["completion", "thinking"]
        if self.decisions is None or self.decisions.row == "not a decision model":
            return chats
        return ["decision"] if self.decisions.only else [*chats, "decision"]

    def _asked(self, connection: Connection, path: str, content: bytes) -> None:
        body, refused = parsed(content)
        self.n_requests += 1
        if len(self.requests) < _KEPT_REQUESTS:
            self.requests.append(body)
        fault = self._fault(self.n_requests, body) if callable(self._fault) else self._fault
        check_fault(fault)
        if fault in AT_ONCE:
            connection.send(fault_response(fault, str(body.get("model"))), close=fault == "dropped")
        elif refused := refused or refusal(path, body, self.models, thinks=self.thinks != "never"):
            connection.send(refused)
        elif "completion" not in self._capabilities:
            connection.send(error_response(400, f'"{body.get("model")}" does not support chat'))
        elif only_loads(body):
            connection.send(self._load(path, body))
        else:
            self._load(path, body)
            job = _Job(self, connection, path, shortened(body, self.context), fault)
            connection.on_gone = job.gone
            if not self._slots.admit(job, time.monotonic()):
                connection.send(error_response(503, BUSY))

    def _load(self, path: str, body: Body) -> bytes:
        """Load the model, or unload it; return what is said if that was all."""
        model, now = full_name(body["model"]), time.time()
        unload = only_loads(body) and body.get("keep_alive") in (0, "0", "0s")
        self._loaded.pop(model, None)
        if not unload:
            self._loaded[model] = now + _KEEP_ALIVE_S
        return loading_response(path, body, "unload" if unload else "load", now)


class _Job:
    """A request that is to be answered, from its arrival on; it lives in the server's thread."""

    def __init__(self, server: StandIn, connection: Connection, path: str, body: Body, fault: FaultName | None) -> None:
        self.server = server
        self.connection = connection
        self.path = path
        self.body = body
        self.fault = fault
        self.number = server.n_requests
        self.came = time.monotonic()
        self.began = self.due = -1.0  # it waits
        self._next_step: asyncio.Handle | asyncio.Task[None] | None = None

    def begin(self, at: float) -> None:
        """Take a slot; the answer is made at once and sent when it is due."""
        self.began = self.due = at
        if self.fault in HELD_BACK:
            self.server._held_back.add(self)
            if self.fault == "drip":
                self.connection.transport.write(response(b"", announced=1_000_000))
                self._drip()
        else:
            self._answer(at)

    def release(self) -> None:
        """Be held back no longer."""
        self.server._held_back.discard(self)
        if self.fault == "drip":
            self.connection.transport.close()
        else:
            self.fault = None
            self._answer(time.monotonic())

    def gone(self) -> None:
        """Make room, for nobody waits for the answer."""
        self.server._held_back.discard(self)
        if self._next_step is not None:
            self._next_step.cancel()
        if self.began < 0:
            self.server._slots.withdraw(self)
        else:
            self.server._slots.finish(time.monotonic())

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
            said = await answer
            self.due = max(self.due, time.monotonic())
            self._send_when_due(self._reply(said))
        except Exception as error:  # likewise
            self.due = max(self.due, time.monotonic())
            self._send_when_due(error_response(500, f"stand-in: {error!r}"))

    def _reply(self, said: str | Said) -> bytes:
        finished = time.time() + self.due - time.monotonic()
        times = Times(finished, self.began - self.came, self.due - self.began)
        ending: Ending = "error" if self.fault == "error-in-stream" else "none" if self.fault == "not-done" else "done"
        said = with_thought(said, self.server.thinks, self.server.thought, self.body)
        return answer_response(self.path, self.body, spoiled(said, self.fault, self.body), times, ending)

    def _send_when_due(self, reply: bytes) -> None:
        self._next_step = asyncio.get_running_loop().call_at(self.due, self._send, reply)

    def _send(self, reply: bytes) -> None:
        cut = self.fault == "partial-body"
        self.connection.send(reply[:-10] if cut else reply, close=cut)
        self.server._slots.finish(self.due)
