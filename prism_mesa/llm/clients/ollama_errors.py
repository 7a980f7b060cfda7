"""What can go wrong between us and an Ollama server, each with its own word for the ledger.

| reason | what happened |
|---|---|
| `refused` | nobody listens there, or the name is unknown |
| `timeout` | no complete answer within `timeout_s` |
| `dropped` | the connection broke, or the body was cut |
| `http-404`, ... | the server refused the request (4xx), or redirects (3xx), which is not followed |
| `too-large` | the response has too many bytes, or unpacks to too many |
| `busy` | 503, its queue is full |
| `server-error` | another 5xx |
| `error-body` | a 5xx whose body is not of the form the `ollama` package reads |
| `not-json` | 200, but no JSON |
| `wrong-shape` | 200 and JSON, but no chat answer |
| `transport` | anything else that HTTP can do wrong |
| `no-answer` | 200, but no decision |
| `refusal`, `wrong-options`, `wrong-numbers`, `contradiction` | (raised by `formats.decision`) a useless decision |
| `partial`, `empty` | (raised by the client) an unfinished or an empty answer |
| `thought` | (raised by the client) nothing but a thought |
| `cut-answer` | (by `formats.multiple_choice`) it ran out of tokens, so it may have gone on |
| `cut-prompt` | (raised by the client) the server read only part of the prompt |
| `unmatched` | (raised by the client) log-probabilities that may be of a thought |
| `circuit-open`, `still-down` | (raised by `HostPool`) all servers are down: not asked; tried again in vain |
| `resting` | (raised by `HostPool`) the same, but only for some seconds: to be asked again |
| `too-long`, `refused-request` | (raised by the embedded client) the prompt does not fit; llama.cpp refuses it |

`dispatcher.may_pass` says what is tried again.
"""

from prism_mesa.errors import OracleError
from prism_mesa.llm.clients.base import status_reason
from prism_mesa.llm.clients.responses import retry_after_s


def client_faults() -> tuple[type[Exception], ...]:
    """Return the exceptions that the `ollama` package lets through (ConnectionError is an OSError)."""
    import httpx
    import pydantic
    from ollama import ResponseError

    return (
        OracleError,  # of `responses.Guard`
        OSError,
        httpx.HTTPError,
        ResponseError,
        pydantic.ValidationError,
        ValueError,  # JSONDecodeError, and a whole number of too many digits
        UnicodeDecodeError,
        RecursionError,
        TypeError,
        AttributeError,
    )


def ollama_fault(error: Exception, label: str, timeout_s: float) -> OracleError:
    """Return one of `client_faults` as an `OracleError` that says which of the cases it is."""
    reason, said = _named(error, timeout_s)
    after_s = retry_after_s(getattr(error.__context__, "response", None), timeout_s)
    return OracleError(reason, f"{label}: {said}", retry_after_s=after_s)


def _named(error: Exception, timeout_s: float) -> tuple[str, str]:
    """Return the reason and a sentence; the order of the cases matters, some are kinds of others."""
    import httpx
    import pydantic
    from ollama import ResponseError

    match error:
        case OracleError(reason=reason):
            return reason, str(error)
        case TimeoutError() | httpx.TimeoutException():
            return "timeout", f"no answer within {timeout_s:g} s"
        case ResponseError(status_code=status):
            return status_reason(status), f"the server says {str(error.error)[:200]} (status {status})"
        case httpx.ConnectError():
            return "refused", f"no connection ({error})"
        case httpx.NetworkError() | httpx.ProtocolError():
            return "dropped", f"the connection broke ({error})"
        case httpx.HTTPError():
            return "transport", f"{type(error).__name__}: {error}"
        case OSError():
            return "refused", f"no connection ({connection_fault(error, timeout_s)})"
        case AttributeError():
            hidden = _hidden_status(error)
            refused = isinstance(hidden, int) and 400 <= hidden < 500
            return (
                f"http-{hidden}" if refused else "error-body",
                f"an error with status {hidden} and an unreadable body",
            )
        case TypeError() | pydantic.ValidationError():
            return "wrong-shape", "the answer is JSON, but no chat answer"
        case _:
            return "not-json", "the answer is no JSON"


def _hidden_status(error: Exception) -> int | str:
    """Return the status of the reply whose body the `ollama` package could not read."""
    response = getattr(error.__context__, "response", None)
    return getattr(response, "status_code", "unknown")


def connection_fault(error: Exception, timeout_s: float) -> str:
    """Return in a few words why a server does not answer as an Ollama server would."""
    import httpx
    from ollama import ResponseError

    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return f"nothing within {timeout_s:g} s"
    if isinstance(error, OracleError):
        return str(error)
    if isinstance(error, ResponseError):
        return f"status {error.status_code}"
    if isinstance(error, httpx.HTTPError):
        return f"the connection broke: {error}"
    if not isinstance(error, OSError):
        return "something else than an Ollama server answers"
    cause = str(error.__context__ or error)
    unknown = "Name or service" in cause or "name resolution" in cause or "nodename" in cause
    return "the name is unknown" if unknown else "connection refused"
