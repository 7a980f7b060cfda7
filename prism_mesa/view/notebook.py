"""The summary of a run that a notebook displays."""

from typing import Final

from prism_mesa.markup import bar_html, card_html, facts_html, note_html
from prism_mesa.runs.lifecycle import RunResult
from prism_mesa.statechart import STATE_COLORS
from prism_mesa.view.summaries import economy_lines, run_lines

_OMITTED: Final = frozenset(("run", "states", "network", "time", "memory", "pictures", "next"))
"""Lines of the summary that a card shows in another form, or not at all."""


def run_html(result: RunResult) -> str:
    """Return a run as HTML: its status, seed, states as a bar, summary and folder.

    Raises:
        LookupError: If the summary lacks a part. A damaged summary may also raise ValueError or TypeError.
    """
    summary, remark = result.summary, result.state or result.status
    parts = [note_html(result.run_dir)]
    if summary:
        remark += f", seed {summary['seed']}"
        lines = economy_lines(summary) if "nations" in summary else run_lines(summary)
        parts.insert(0, facts_html((name, text) for name, text in lines if name not in _OMITTED))
    if shares := summary.get("state_shares"):
        bars = [(state.value, color, float(shares.get(state.value, 0.0))) for state, color in STATE_COLORS.items()]
        largest = sorted((share, name) for name, _, share in bars if share >= 0.005)[::-1]
        label = ", ".join(f"{name} {share:.1%}" for share, name in largest)
        parts.insert(0, bar_html(bars) + note_html(f"agent-ticks: {label}"))
    return card_html("run", result.run_dir.name, *parts, remark=remark)
