"""The server of `prism app`: Solara on the loopback address, with a front end stored on this machine."""
