"""Parameters fitted to targets by simulation: what is fitted, how, and what the data say of each parameter."""
