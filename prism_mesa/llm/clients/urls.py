"""What is the same for every kind of server: addresses, settings, and what it tells."""

import ipaddress
import math
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from prism_mesa.errors import ConfigError, said_openly

_PORTS = {"http": 80, "https": 443}


def is_local(host: str) -> bool:
    """Whether `host` is this machine; as in Ollama's own program, a proxy is then passed by."""
    name = urlsplit(host).hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def server_address(host: str) -> str:
    """Return `host` as ``scheme://name:port/path``, by Ollama's own rule for a missing scheme or port.

    Who asks, and keys in its query, are left out: this is what is said and written (see `credentials`).

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
        shown = said_openly(f"host={host}").removeprefix("host=")
        raise ConfigError(f"reasoner.host: {shown!r} is no address; give one like http://127.0.0.1:11434")
    shown = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{shown}:{port}{parts.path.rstrip('/')}"


def credentials(host: str) -> dict[str, Any]:
    """Return what of an address only its server is to see, as arguments of an HTTP client: user and password, query.

    >>> credentials("http://me:p%40ss@127.0.0.1:11434?api_key=abc")
    {'auth': ('me', 'p@ss'), 'params': {'api_key': 'abc'}}
    """
    parts = urlsplit(host.strip() if "://" in host else f"http://{host.strip()}")
    own: dict[str, Any] = {}
    if parts.username is not None:
        own["auth"] = (unquote(parts.username), unquote(parts.password or ""))
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return own | ({"params": query} if query else {})


def check_settings(model: str, timeout_s: float, temperature: float) -> None:
    """Make sure that an LLM can be asked with these.

    Raises:
        ConfigError: If not.
    """
    if not model.strip():
        raise ConfigError("reasoner.model: empty; give the name of an LLM, as in 'ollama list'")
    if not 0 < timeout_s < math.inf:
        raise ConfigError(f"reasoner.timeout_s: {timeout_s} is not a number of seconds above 0")
    if not 0 <= temperature < math.inf:
        raise ConfigError(f"reasoner.temperature: {temperature} is below 0 or no number")


def reported_count(told: object) -> int:
    """Return a count as a server tells it, or 0 (not known) where that can be none."""
    return told if type(told) is int and 0 <= told < 2**31 else 0
