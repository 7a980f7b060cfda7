"""Customers of a shop: the chart decides what is clear, and an oracle the rest."""

import mesa

from prism_mesa import F, Reasoner, Statechart, StatechartAgent, Transition, after, state_counts, tick_all
from prism_mesa.chart_agents import why

PRICE = 10


class Customer(StatechartAgent, mesa.Agent):
    """A customer with some money."""

    chart = Statechart(
        ["browsing", "buying", "leaving"],
        [
            Transition(after(2), "browsing", "buying", F.agent.budget > 2 * PRICE),
            Transition(after(2), "browsing", "leaving", F.agent.budget < PRICE),
            Transition(after(2), "browsing", None),  # the oracle decides
        ],
        initial="browsing",
        name="shop",
    )

    def __init__(self, model, budget):
        super().__init__(model)
        self.budget = budget


class Shop(mesa.Model):
    """A shop with 100 customers. `client` is an LLM client or a function of the prompt."""

    def __init__(self, client=lambda prompt: "leaving", rng=42):
        super().__init__(rng=rng)
        self.reasoner = Reasoner(
            client,
            role="a customer in a small shop",
            task="You decide what the customer does next",
            describe=lambda customer, _: f"Price: {PRICE}\nMoney to spend: {customer.budget}",
            ledger="shop.sqlite",
        )
        for _ in range(100):
            Customer(self, self.random.randint(5, 30))

    def step(self):
        """Let all customers make a tick."""
        tick_all(self.agents)


if __name__ == "__main__":
    shop = Shop()
    why(shop.agents.to_list()[0], "after(2)")
    shop.run_for(2)
    print(state_counts(shop), dict(shop.reasoner.counts))
    shop.reasoner.close()
