"""The server of `prism app`: Solara on the loopback address, its front end from this machine, and what it shows."""
