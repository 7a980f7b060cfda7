"""The summary of a run that a notebook displays."""

from collections.abc import Mapping
from typing import Final

from prism_mesa.markup import bar_of, card_of, facts_of, note_of
from prism_mesa.runs.lifecycle import RunResult
from prism_mesa.statechart import STATE_COLORS
from prism_mesa.view.summaries import economy_lines, run_lines

_LEFT_OUT: Final = frozenset(("run", "states", "network", "time", "memory", "pictures", "next"))
"""Lines of the summary that a card has in another form, or not at all."""


def run_html(result: RunResult) -> str:
    """Return a run as HTML: its status, seed, states as a bar, summary and folder.

    Raises:
        LookupError: If the summary lacks a part. A damaged summary may also raise ValueError or TypeError.
    """
    caption, name = result.summary, result.run_dir.name
    state = result.state or result.status
    if not caption:
        return card_of("run", name, note_of(result.run_dir), about=state)
    lines = economy_lines(caption) if "nations" in caption else run_lines(caption)
    facts = facts_of([(what, text) for what, text in lines if what not in _LEFT_OUT])
    states = caption.get("state_shares")
    parts = (_states(states) if states else "", facts, note_of(result.run_dir))
    return card_of("run", name, *parts, about=f"{state}, seed {caption['seed']}")


def _states(shares: Mapping[str, float]) -> str:
    """Return the shares of agent-ticks by state as a bar, with labels for the larger ones below."""
    order = [(state.value, color, float(shares.get(state.value, 0.0))) for state, color in STATE_COLORS.items()]
    largest = sorted((share, name) for name, _, share in order if share >= 0.005)[::-1]
    words = ", ".join(f"{name} {share:.1%}" for share, name in largest)
    return bar_of(order) + note_of(f"agent-ticks: {words}")
