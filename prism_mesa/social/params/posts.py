"""Parameters of posts."""

from typing import Annotated, Literal

from pydantic import Field

from prism_mesa.params import Params, Share, UserPath
from prism_mesa.without_effect import OnlyWith


class SeededParams(Params):
    """Posts that you place. Authors with the requested `size` and `position` are drawn and take turns.

    The text of each post is drawn from the corpus, whoever its author is. The summary names the authors.
    """

    count: int = Field(0, ge=0, le=10_000, description="posts that you place")
    round: int = Field(0, ge=0, le=10_000_000, description="round of the first post; the others follow, one a round")
    size: Literal["any", "small", "large"] = Field(
        "any", description="followers of the author; small: the lowest 10 % of agents, large: the highest 10 %"
    )
    position: Literal["any", "bridge", "periphery"] = Field(
        "any",
        description="share of the author's followers from other communities; bridge: the highest 20 % of the authors "
        "of that size, periphery: the lowest 20 %; communities are the blocks of stochastic_block, in other networks "
        "agents with the same main interest",
    )


class PostsParams(Params):
    """The texts that agents post."""

    file: UserPath | None = Field(None, description="posts with a column text (CSV, .tsv, .gz, Parquet); null: PRISM's")
    dates: Annotated[Literal["day_first", "month_first"] | None, OnlyWith("posts.file")] = Field(
        None, description="order of dates such as 01/02/2017 in the file; null: the order that fits all of them"
    )
    circulating: int = Field(
        16,
        ge=1,
        le=1_000_000,
        description="number of texts in circulation, from which agents post (agents.post_rate); each round a new text "
        "replaces the oldest",
    )
    authors: Annotated[Literal["id", "rank"], OnlyWith("posts.file")] = Field(
        "id", description="how authors of the file become agents: by id, or by rank of posts and of followers"
    )
    n_topics: int = Field(16, ge=2, le=512, description="dimensions of topics and interests")
    embedder: Literal["hashing", "wordllama"] = Field(
        "hashing", description="how topics are computed from texts; wordllama needs the extra 'embeddings'"
    )
    label_weight: Share = Field(
        0.7, description="weight of a post's topic label against its words, where the file has topics"
    )
    media_share: float | None = Field(
        None,
        ge=0,
        le=1,
        description="share of the texts that have media; a larger share only adds texts to those of a smaller; a "
        "text without media gets an image; null: as in the file. Media count only inside the band: for the rule "
        "(reasoner.rule.media), a distilled model, and in prompts; feeds ignore them",
    )
    seeded: Annotated[SeededParams, OnlyWith("posts.seeded.count")] = Field(default_factory=SeededParams)
