"""Which requests the page's server answers: those that name this machine, from its own page."""

import asyncio

import pytest

from prism_mesa.view.server.serving import OwnHostsOnly


async def _app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def answer(headers, host="127.0.0.1", kind="http"):
    """Return what a server that listens at `host` sends to a request with some headers."""
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    scope = {"type": kind, "headers": [(name.encode(), value.encode()) for name, value in headers.items()]}
    asyncio.run(OwnHostsOnly(_app, host)(scope, receive, send))
    return sent


@pytest.mark.parametrize("host", ["localhost:8765", "LOCALHOST", "127.0.0.1:8765", "[::1]:8765", "192.168.1.7:8765"])
def test_requests_under_a_name_or_address_of_this_machine_are_answered(host):
    assert answer({"Host": host})[0]["status"] == 200


@pytest.mark.parametrize("host", ["rebound.example", "localhost.example:8765", "127.0.0.1.example", "", "[::1", "a b"])
def test_requests_under_any_other_name_are_refused_since_a_foreign_page_may_have_sent_them(host):
    start, body = answer({"Host": host})
    assert start["status"] == 400
    assert body["body"] == b"prism app: this server answers only under the address it printed.\n"


@pytest.mark.parametrize("origin", ["http://foreign.example", "http://localhost:9999", "null"])
def test_a_page_of_another_site_reaches_neither_the_server_nor_its_web_socket(origin):
    headers = {"Host": "localhost:8765", "Origin": origin}
    assert answer(headers)[0]["status"] == 403
    assert answer(headers, kind="websocket") == [
        {
            "type": "websocket.close",
            "code": 1008,
            "reason": "this server answers requests from its own page only, not from other sites.",
        }
    ]


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::"])
def test_a_server_of_all_addresses_answers_neither_foreign_names_nor_requests_without_one(host):
    assert [answer({"Host": name}, host=host)[0]["status"] for name in ("rebound.example", "", ":8765")] == [400] * 3
