"""Follows of a network as pairs."""


def follows(network):
    return {(int(dst), int(src)) for src, dst in zip(*network.edges(), strict=True)}
