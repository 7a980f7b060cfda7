"""Who waits for an answer."""

from dataclasses import dataclass, field

from prism_mesa.snapshot import Restorable
from prism_mesa.social.state.population import Rows


@dataclass
class PendingAnswers(Restorable):
    """Agents whose question is out, with what they were doing: row -> (tick, trigger, post).

    `keys` holds what the guards said to those whose answer may lead along several transitions (see
    `Statechart.resolve_key`).
    """

    changes = ("by_row", "keys")

    by_row: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    keys: dict[int, int] = field(default_factory=dict)

    def put(self, ticks: Rows, rows: Rows, triggers: Rows, posts: Rows) -> None:
        """Let agents wait; each waits for one answer at most."""
        doing = zip(ticks.tolist(), triggers.tolist(), posts.tolist(), strict=True)
        self.by_row.update(zip(rows.tolist(), doing, strict=True))

    def __bool__(self) -> bool:
        return bool(self.by_row)
