"""Several servers as one: the least busy is asked, one that is down is left alone and tried again."""

import asyncio
import json
import logging
import threading

import pytest

from prism_mesa.errors import ConfigError, OracleError
from prism_mesa.llm import Completion, HostPool
from prism_mesa.reasoner import Persona, PlacedQuestion, Question, Reasoner
from prism_mesa.statechart import AgentState

C, S = AgentState.COMPOSING, AgentState.SCROLLING
SCROLL = json.dumps({"next_state": "scrolling"})


class Server:
    """One server of a client's own: it fails with `fault`, if there is one, and takes `seconds`."""

    name = "tiny"
    decoding = {"temperature": 0}  # noqa: RUF012

    def __init__(self, label="one", digest="d1", *, fault="", seconds=0.0, version="0.99"):
        self.label, self.digest, self.server_version = label, digest, version
        self.fault, self.seconds = fault, seconds
        self.asked = self.now = self.most = self.checked = 0

    async def chat(self, prompt, schema=None, seed_offset=0, top_logprobs=0):
        self.asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        if self.fault:
            raise OracleError(self.fault, f"{self.label}: on purpose")
        return Completion(SCROLL)

    def check(self):
        self.checked += 1


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def reason_of(hosts):
    try:
        asyncio.run(hosts.chat("?"))
    except OracleError as error:
        return error.reason
    return ""


def asks(n):
    return [
        PlacedQuestion(Question(Persona(f"a{i}"), AgentState.EVALUATING, "decides", (C, S)), agent=i) for i in range(n)
    ]


# -- who is asked --------------------------------------------------------------------------------------


def test_a_question_goes_to_the_least_busy_and_of_equals_to_the_first():
    servers = [Server("one", seconds=0.01), Server("two", seconds=0.01)]
    hosts = HostPool(servers)

    async def five_at_once():
        await asyncio.gather(*(hosts.chat("?") for _ in range(5)))

    asyncio.run(five_at_once())
    assert [(server.asked, server.most) for server in servers] == [(3, 3), (2, 2)]
    asyncio.run(hosts.chat("?"))
    assert [server.asked for server in servers] == [4, 2]


def test_a_question_that_is_given_up_no_longer_makes_a_server_busy():
    servers = [Server("one", seconds=5), Server("two")]
    hosts = HostPool(servers)

    async def given_up():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.005):
                await hosts.chat("?")
        servers[0].seconds = 0
        await hosts.chat("?")

    asyncio.run(given_up())
    assert [server.asked for server in servers] == [2, 0]


# -- what is down ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["refused", "timeout", "dropped", "busy", "server-error", "transport"])
def test_a_server_that_fails_n_times_in_a_row_is_left_alone_and_tried_again_soon(fault):
    clock, server = Clock(), Server(fault=fault)
    hosts = HostPool([server], failures=3, grace_s=0, patience_s=0, clock=clock)
    assert [reason_of(hosts) for _ in range(5)] == [fault] * 3 + ["circuit-open"] * 2
    assert server.asked == 3
    clock.now += 0.02
    assert [reason_of(hosts), reason_of(hosts)] == ["still-down", "circuit-open"]
    assert server.asked == 4
    clock.now += 0.02
    server.fault = ""
    assert [reason_of(hosts) for _ in range(3)] == ["", "", ""]


def test_while_others_answer_the_rest_of_a_server_doubles_up_to_two_minutes():
    clock, dead = Clock(), Server("dead", fault="refused")
    hosts = HostPool([dead, Server("alive")], failures=1, grace_s=0, patience_s=0, clock=clock)
    assert reason_of(hosts) == "refused"
    rests = []
    for _ in range(10):
        began, asked = clock.now, dead.asked
        while dead.asked == asked:
            clock.now += 0.5
            reason_of(hosts)
        rests.append(clock.now - began)
    assert rests == [1, 2, 4, 8, 16, 32, 64, 120, 120, 120]


@pytest.mark.parametrize("fault", ["http-404", "empty", "partial", "not-json", "wrong-shape"])
def test_what_says_more_about_the_question_than_about_the_server_does_not_bring_it_down(fault):
    hosts = HostPool([Server(fault=fault)], failures=2)
    assert [reason_of(hosts) for _ in range(6)] == [fault] * 6


def test_a_dead_server_costs_no_more_than_its_first_failures_and_no_fallback_while_another_works(caplog):
    dead, alive = Server("dead", fault="refused"), Server("alive", seconds=0.001)
    with Reasoner(HostPool([dead, alive], failures=5, clock=Clock()), backoff_s=0, attempts=6) as reasoner:
        answers = reasoner.answer(asks(60))
    assert {answer.source for answer in answers} == {"llm"}
    assert dead.asked <= 5 + reasoner.params.max_concurrency
    assert alive.asked == 60
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_one_trial_at_a_time_is_sent_to_a_server_that_was_down():
    clock, server = Clock(), Server(fault="refused")
    hosts = HostPool([server], failures=1, grace_s=0, patience_s=0, clock=clock)
    assert reason_of(hosts) == "refused"
    clock.now += 1
    server.fault, server.seconds = "", 0.005

    async def ask_all():
        said = await asyncio.gather(*(hosts.chat("?") for _ in range(4)), return_exceptions=True)
        return [getattr(one, "reason", "") for one in said]

    assert asyncio.run(ask_all()) == ["", "circuit-open", "circuit-open", "circuit-open"]
    assert asyncio.run(ask_all()) == ["", "", "", ""]


def test_a_dead_server_ends_in_fallbacks_that_are_counted_and_not_waited_for():
    server = Server(fault="refused")
    with Reasoner(HostPool([server], failures=5, grace_s=0, clock=Clock()), backoff_s=0, max_concurrency=4) as reasoner:
        answers = reasoner.answer(asks(40))
    assert {answer.source for answer in answers} == {"fallback"}
    assert sum(reasoner.reasons.values()) == 40
    assert set(reasoner.reasons) <= {"refused", "circuit-open", "still-down"}
    assert server.asked <= 5 + 4


# -- one LLM --------------------------------------------------------------------------------------------


def test_hosts_are_one_client_with_the_name_decoding_digest_and_versions_of_theirs():
    hosts = HostPool([Server("one"), Server("two", version="0.98"), Server("three")])
    assert (hosts.name, hosts.decoding, hosts.digest) == ("tiny", {"temperature": 0}, "d1")
    assert (hosts.label, hosts.server_version) == ("one and 2 more", "0.99, 0.98")
    assert HostPool([Server("one")]).label == "one"


def test_different_builds_of_the_llm_are_an_error_that_names_both():
    hosts = HostPool([Server("one", "aaaaaaaaaaaaaaaa"), Server("two", "b"), Server("three", "b")])
    said = r"^reasoner.host: the servers have different builds of tiny \(one: aaaaaaaaaaaa; three: b\): pull it again$"
    with pytest.raises(ConfigError, match=said):
        hosts.check()


def test_questions_wait_for_the_one_that_finds_a_server_back_and_none_is_lost():
    server = Server(fault="refused")
    hosts = HostPool([server], failures=1)
    assert reason_of(hosts) == "refused"
    server.fault, server.seconds = "", 0.005

    async def ask_all():
        return await asyncio.gather(*(hosts.chat("?") for _ in range(8)))

    assert len(asyncio.run(ask_all())) == 8


def test_for_some_seconds_after_all_went_down_questions_are_put_off_and_not_given_up():
    clock, server = Clock(), Server(fault="refused")
    hosts = HostPool([server], failures=1, grace_s=5, patience_s=0, clock=clock)
    assert [reason_of(hosts), reason_of(hosts)] == ["refused", "resting"]
    clock.now += 4.9
    assert [reason_of(hosts), reason_of(hosts)] == ["resting", "resting"]  # tried again, and not asked
    clock.now += 0.2
    assert [reason_of(hosts), reason_of(hosts)] == ["still-down", "circuit-open"]


def test_a_server_that_comes_back_within_seconds_costs_no_fallback():
    server = Server(fault="refused")
    with Reasoner(HostPool([server], failures=5), backoff_s=0.05, max_concurrency=4) as reasoner:
        threading.Timer(0.6, lambda: setattr(server, "fault", "")).start()
        answers = reasoner.answer(asks(30))
    assert {answer.source for answer in answers} == {"llm"}
