"""The eleven design concepts of the ODD protocol, as a configuration settles them."""

from collections.abc import Iterator

from prism_mesa.runs.config import Config
from prism_mesa.view.study.blocks import Words
from prism_mesa.view.study.odd.words import asks_llm


def design_concepts(config: Config) -> Iterator[tuple[str, Words]]:
    """Yield each concept with what the model does about it."""
    yield from _about_agents(config)
    yield from _about_the_system(config)


def _about_agents(config: Config) -> Iterator[tuple[str, Words]]:
    llm = asks_llm(config)
    yield (
        "Basic principles",
        "An agent's behaviour is a statechart. Guards settle what follows from utility and thresholds; only where "
        f"the chart leaves a choice open is {'an LLM' if llm else 'somebody else'} asked, and every answer is counted.",
    )
    yield (
        "Emergence",
        "Cascades, inequality of attention, and what topics reach whom come out of feeds, the network and single "
        "decisions; none of them is imposed.",
    )
    yield (
        "Adaptation",
        "Agents choose what to engage with by the post at hand; interests, thresholds and propensities stay as they "
        "are during a run.",
    )
    yield "Objectives", "None is maximised: an agent compares a post's utility with its own band."
    yield (
        "Learning",
        "None, but for notes that agents can keep and take up again when an LLM writes for them."
        if config.content == "llm"
        else "None: agents do not change how they decide.",
    )
    yield (
        "Prediction",
        "None by agents; a feed may rank by predicted engagement." if config.feed.mode.startswith("x_") else "None.",
    )
    yield (
        "Sensing",
        f"An agent sees its feed of up to {config.feed.size} posts, of each its topics, author, kind and counters, and "
        "its own state and recent history; all as they stood when the round opened.",
    )


def _about_the_system(config: Config) -> Iterator[tuple[str, Words]]:
    yield (
        "Interaction",
        "Indirect, through posts: what one agent writes or reshares can appear in the feeds of those who follow it "
        "in later rounds. Agents do not meet within a round."
        + (" They change whom they follow by what they read." if config.network.dynamics == "live" else ""),
    )
    who = (
        "an LLM asked at temperature 0 that has no draw of its own"
        if asks_llm(config) and config.reasoner.temperature == 0 and config.reasoner.answer in (None, "choice")
        else "the decisions of an LLM, which are recorded"
        if asks_llm(config)
        else "open choices"
    )
    yield (
        "Stochasticity",
        "Profiles, network, coming online, posting, texts, order of equal posts, kind of engagement, and "
        f"{who}: every draw is a hash of seed, purpose, round, tick and agent, so two arms with one seed share their "
        "draws and runs repeat exactly.",
    )
    blocks = config.network.kind == "stochastic_block"
    yield (
        "Collectives",
        f"{config.network.blocks} blocks of agents that follow each other more than others."
        if blocks
        else "None is imposed; groups are those that the network has.",
    )
    yield (
        "Observation",
        "After each round its counts are recorded, and at the end of a run its measures are taken from all agents and "
        "posts; nothing in the model reads a record.",
    )
