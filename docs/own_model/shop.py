"""A shop: customers buy, leave or think about it. An oracle decides only where price and budget do not."""

import mesa

from prism_mesa import F, Reasoner, Statechart, StatechartAgent, Transition, after, state_counts, tick_all
from prism_mesa.chart_agents import column, why

PRICE = 10.0


def describe(customer, _):
    """Return what the oracle is told about a customer."""
    return f"Price: {PRICE:g}\nMoney to spend: {customer.budget:g}\nNeeds it: {'yes' if customer.needs_it else 'no'}"


def play_oracle(prompt):
    """Answer as an LLM would, by what the prompt says. Put a client in its place to ask an LLM."""
    return "buying" if "Needs it: yes" in prompt else "leaving"


class Customer(StatechartAgent, mesa.Agent):
    budget = column(0.0)
    needs_it = column(False)
    chart = Statechart(
        ["browsing", "buying", "leaving"],
        [
            Transition(after(2), "browsing", "buying", F.agent.needs_it & (F.agent.budget > 1.5 * PRICE)),
            Transition(after(2), "browsing", "leaving", F.agent.budget < PRICE),
            Transition(after(2), "browsing", None),  # otherwise the oracle decides
        ],
        initial="browsing",
        name="shop",
    )


class Shop(mesa.Model):
    """A day in the shop.

    Args:
        client: The LLM, or a function of the prompt.
        ledger: A file that keeps the answers, so the same questions cost nothing.
    """

    def __init__(self, n=200, client=play_oracle, ledger=None, rng=42):
        super().__init__(rng=rng)
        self.reasoner = Reasoner(
            client,
            role="a customer in a small shop",
            task="You decide what the customer does next",
            descriptions={"buying": "Buy the lamp and pay for it", "leaving": "Leave the shop without it"},
            describe=describe,
            ledger=ledger,
        )
        for _ in range(n):
            customer = Customer(self)
            customer.budget = round(self.random.uniform(5, 25))
            customer.needs_it = self.random.random() < 0.5
        self.datacollector = mesa.DataCollector({"counts": state_counts})

    def step(self):
        tick_all(self.agents)
        self.datacollector.collect(self)


def draw():
    """Return a figure: what customers of each budget did, and who was left to the oracle."""
    from prism_mesa.figure import NotebookFigure

    shop = Shop()
    shop.run_for(3)
    figure = NotebookFigure(figsize=(6, 3))
    axes = figure.subplots()
    for state in ("buying", "leaving"):
        budgets = [customer.budget for customer in shop.agents if customer.state == state]
        color = Customer.chart.colors[Customer.chart.find_state(state, "figure")]
        axes.hist(budgets, bins=range(4, 27), alpha=0.6, color=color, label=state)
    axes.axvspan(PRICE, 1.5 * PRICE, color="0.9", zorder=0, label="left to the oracle, also if not needed")
    axes.set(xlabel="money to spend", ylabel="customers")
    axes.legend(frameon=False)
    shop.reasoner.close()
    return figure


if __name__ == "__main__":
    shop = Shop(ledger="shop.sqlite")
    for _ in range(2):
        shop.step()
    print(state_counts(shop), dict(shop.reasoner.counts))
    undecided = next(customer for customer in shop.agents if PRICE < customer.budget < 1.5 * PRICE)
    undecided.state = "browsing"
    why(undecided, "after(2)")
    draw().savefig("shop.png", dpi=150, bbox_inches="tight")
