"""The state of a platform: agents, posts, network, clock, and what each agent has read."""
