"""Whether `SocialModel` and the plain Mesa model of its rules (`reference_mesa`) agree, as far as chance allows.

uv run --group bench python benchmarks/agreement.py
"""

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass

from reference_mesa import IDLE, STATES, TOTALS, ReferenceModel
from worlds import PLAIN

from prism_mesa.social.model import SocialModel


@dataclass(frozen=True)
class Compared:
    """One quantity of both models over the same rounds.

    Attributes:
        count: What stands behind the number: events; for a share, agent-ticks (idle: agent-rounds).
    """

    name: str
    columns: float
    reference: float
    count: float

    @property
    def difference(self) -> float:
        """The columns' number relative to the reference's, less 1."""
        return self.columns / self.reference - 1 if self.reference else math.inf * bool(self.columns)

    @property
    def allowed(self) -> float:
        """The relative difference that other random numbers explain: 2 % and four standard errors."""
        return 0.02 + 4 * math.sqrt(2 / max(self.count, 1.0))


def compared(model: SocialModel, reference: ReferenceModel) -> Iterator[Compared]:
    """Yield the totals and the shares of agent-ticks of two models that have run the same number of rounds."""
    for name in TOTALS:
        yield Compared(name, model.totals[name], reference.totals[name], reference.totals[name])
    columns = model.agent_ticks / model.agent_ticks.sum()
    for code, state in enumerate(STATES):
        ticks = reference.agent_ticks[state]
        visits = ticks / (reference.ticks_per_round if state == IDLE else 1)
        yield Compared(f"share {state}", float(columns[code]), ticks / reference.agent_ticks.total(), visits)


def assert_agreement(model: SocialModel, reference: ReferenceModel) -> float:
    """Return the largest relative difference between two models that have run the same rounds.

    Raises:
        AssertionError: If a total or share differs by more than chance explains.
    """
    assert model.round == reference.round, (model.round, reference.round)
    rows = list(compared(model, reference))
    for row in rows:
        assert abs(row.difference) <= row.allowed, f"the models disagree: {row}, allowed {row.allowed:.1%}"
    return max(abs(row.difference) for row in rows)


def main() -> None:
    """Run both models over the same world, print their numbers and assert that they agree."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--agents", type=int, default=5000)
    options.add_argument("--rounds", type=int, default=15)
    given = options.parse_args()
    model = SocialModel(PLAIN, agents_n=given.agents)
    reference = ReferenceModel(model)
    for _ in range(given.rounds):
        model.step()
        reference.step()
    print(f"{given.agents} agents, {given.rounds} rounds\n")
    print(f"{'':24}{'SocialModel':>14}{'reference':>14}{'difference':>12}{'allowed':>10}")
    for row in compared(model, reference):
        width = ".5f" if row.name.startswith("share") else ",.0f"
        print(
            f"{row.name:24}{row.columns:>14{width}}{row.reference:>14{width}}{row.difference:>12.2%}{row.allowed:>10.2%}"
        )
    print(f"\nthey agree; largest difference {assert_agreement(model, reference):.2%}")


if __name__ == "__main__":
    main()
