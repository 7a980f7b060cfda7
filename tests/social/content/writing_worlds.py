"""Worlds in which an LLM writes."""

from minds import asked
from worlds import plain, ran, small

from prism_mesa.social.model import SocialModel

LIVELY = {
    "content": "llm",
    "agents_activity": 1.0,
    "agents_activity_sigma": 0.5,
    "agents_threshold_mean": 0.5,
    "agents_band": 0.1,
    "agents_post_rate": 0.2,
}


NO_CHOICE = {"agents_band": 0.0}


def lively(mind, rounds=3, kind=SocialModel, options=None, **params):
    model = small(kind, **LIVELY | params, reasoner=asked(mind, max_fallback_share=1, **options or {}))
    try:
        return ran(model, rounds)
    finally:
        model.close()


def thoughts(model):
    return model.recorder.tables.get("thoughts", [])


WORLD = {
    "agents": {"n": 25, "activity": 1.0, "activity_sigma": 0.5, "band": 0.1, "threshold_mean": 0.5},
    "network": {"mean_degree": 8},
    "rounds": 3,
    "seed": 7,
    "content": "llm",
}


def asking(server, world=WORLD, agents=None, **reasoner):
    own = {"kind": "ollama", "host": server.url, "timeout_s": 30, **reasoner}
    own |= {} if own.get("attempts") == 1 else {"backoff_s": 0}
    return plain(world | {"reasoner": own} | {"agents": world["agents"] | (agents or {})})
