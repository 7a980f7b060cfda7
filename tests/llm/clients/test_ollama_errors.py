"""What is said of a server that does not answer as an Ollama server would."""

import httpx
import pytest
from ollama import ResponseError

from prism_mesa.llm.clients.ollama_errors import connection_fault, ollama_fault


def caused_by(cause):
    error = ConnectionError("Failed to connect to Ollama")
    error.__context__ = OSError(cause)
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TimeoutError(), "nothing within 2.5 s"),
        (httpx.ReadTimeout("slow"), "nothing within 2.5 s"),
        (ResponseError("no", 404), "status 404"),
        (httpx.RemoteProtocolError("cut"), "the connection broke: cut"),
        (ValueError("<html>"), "something else than an Ollama server answers"),
        (caused_by("[Errno -2] Name or service not known"), "the name is unknown"),
        (caused_by("[Errno -3] Temporary failure in name resolution"), "the name is unknown"),
        (caused_by("[Errno 8] nodename nor servname provided, or not known"), "the name is unknown"),
        (caused_by("[Errno 111] Connection refused"), "connection refused"),
        (OSError("Name or service not known"), "the name is unknown"),
        (ConnectionError("Failed to connect"), "connection refused"),
    ],
)
def test_it_is_said_in_a_few_words_why_a_server_does_not_answer(error, said):
    assert connection_fault(error, 2.5) == said


def with_hidden_status(status):
    error, error.__context__ = AttributeError("'list' object has no attribute 'get'"), ValueError("a body")
    error.__context__.response = httpx.Response(status)
    return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), "timeout"),
        (ResponseError("moved", 302), "http-302"),
        (ResponseError("no such model", 404), "http-404"),
        (ResponseError("", 499), "http-499"),
        (ResponseError("", 500), "server-error"),
        (ResponseError("", 502), "server-error"),
        (ResponseError("", 503), "busy"),
        (ResponseError("", 504), "server-error"),
        (httpx.ReadError("cut"), "dropped"),
        (httpx.RemoteProtocolError("cut"), "dropped"),
        (httpx.TooManyRedirects("round and round"), "transport"),
        (ConnectionError("nobody"), "refused"),
        (with_hidden_status(399), "error-body"),
        (with_hidden_status(400), "http-400"),
        (with_hidden_status(499), "http-499"),
        (with_hidden_status(500), "error-body"),
        (AttributeError("of no reply"), "error-body"),
        (TypeError("a list"), "wrong-shape"),
        (ValueError("<html>"), "not-json"),
    ],
)
def test_each_fault_of_a_server_has_its_word_and_names_the_server(error, reason):
    fault = ollama_fault(error, "ollama at home", 2.5)
    assert fault.reason == reason
    assert str(fault).startswith("ollama at home: ")
