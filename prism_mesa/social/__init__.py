"""The simulated platform: posts, network, feeds, agents as statecharts, and the Mesa model that runs them."""
