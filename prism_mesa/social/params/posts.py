"""Parameters of posts."""

from typing import Annotated, Literal

from pydantic import Field

from prism_mesa.params import Params, Share, UserPath
from prism_mesa.without_effect import OnlyWith


class SeededParams(Params):
    """Posts that you place; authors of the wanted size and position are drawn and take turns.

    Each has a drawn text of the corpus, which does not depend on the author. The summary names the authors.
    """

    count: int = Field(0, ge=0, le=10_000, description="posts that you place")
    round: int = Field(0, ge=0, le=10_000_000, description="round of the first post; the others follow, one a round")
    size: Literal["any", "small", "large"] = Field(
        "any", description="followers of the author: small: the tenth with fewest, large: the tenth with most"
    )
    position: Literal["any", "bridge", "periphery"] = Field(
        "any",
        description="share of the author's followers from other communities; among authors of that size bridge is the "
        "fifth with the highest share, periphery with the lowest; communities are the blocks of stochastic_block, in "
        "other networks agents with the same main interest",
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
        description="texts that agents post from at a time (agents.post_rate), as the talk of the day; each round a "
        "new text replaces the oldest",
    )
    authors: Annotated[Literal["id", "rank"], OnlyWith("posts.file")] = Field(
        "id", description="how authors of the file become agents: by id, or by rank: most posts to most followers"
    )
    n_topics: int = Field(16, ge=2, le=512, description="dimensions of topics and interests")
    embedder: Literal["hashing", "wordllama"] = Field(
        "hashing", description="text to topics; wordllama needs the extra 'embeddings'"
    )
    label_weight: Share = Field(
        0.7, description="weight of a post's topic label against its words, where the file has topics"
    )
    media_share: float | None = Field(
        None,
        ge=0,
        le=1,
        description="share of the texts that have media; the texts of a smaller share are among those of a larger; a "
        "text without media gets an image; null: as in the file. Media count only inside the band: for the rule "
        "(reasoner.rule.media), a distilled model, and in prompts; feeds ignore them",
    )
    seeded: Annotated[SeededParams, OnlyWith("posts.seeded.count")] = Field(default_factory=SeededParams)
