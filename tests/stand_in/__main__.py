"""``python -m stand_in``: serves until Ctrl-C."""

import argparse
import sys
import threading
from collections.abc import Sequence

from prism_mesa.errors import ConfigError
from prism_mesa.llm.params import DECISION_MODEL
from prism_mesa.terminal import show
from stand_in import StandIn, choose_by_hash, embedded_brain
from stand_in.decisions import Decisions


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C; return the exit code."""
    parser = argparse.ArgumentParser("python -m stand_in", description="A stand-in for Ollama.")
    parser.add_argument("--port", type=int, default=11434)
    parser.add_argument("--slots", type=int, default=4, help="answers at a time")
    parser.add_argument("--latency-ms", type=float, help="per answer; default 100, embedded: as long as it takes")
    parser.add_argument("--model", help="what the LLM is called; default llama3.2, embedded: smollm2:135m")
    parser.add_argument("--brain", choices=("hash", "embedded"), default="hash")
    parser.add_argument("--decides", action="store_true", help="play a decision model, d1-omni:600m")
    given = parser.parse_args(arguments)
    embedded = given.brain == "embedded"
    model = given.model or ("smollm2:135m" if embedded else DECISION_MODEL if given.decides else "llama3.2")
    latency_ms = (0.0 if embedded else 100.0) if given.latency_ms is None else given.latency_ms
    try:
        brain = embedded_brain() if embedded else choose_by_hash
        decisions = Decisions(only=False) if given.decides else None
        own = {"slots": given.slots, "latency": latency_ms / 1000, "port": given.port, "decisions": decisions}
        with StandIn(brain, (model,), **own) as server:
            use = (
                f"reasoner.kind=ollama reasoner.host={server.url} reasoner.model={model}"
                + " reasoner.answer=decision" * given.decides
            )
            told = f"Use it with: prism run {use} (or, for nations, prism economy {use})"
            show(f"A stand-in for Ollama serves at {server.url} until Ctrl-C. {told}")
            while not threading.Event().wait(0.5):  # a Ctrl-C that comes just before one falls asleep wakes nobody
                pass
    except KeyboardInterrupt:
        return 0
    except (OSError, ConfigError) as error:
        way_out = "; is Ollama itself running? Take another --port" if isinstance(error, OSError) else ""
        show(f"{error}{way_out}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
