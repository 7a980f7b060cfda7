"""Parameters of posts, files, simulated time and records."""

import codecs
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, field_validator

from prism_mesa.errors import did_you_mean
from prism_mesa.params import Params, Share, UserPath
from prism_mesa.social.params.user_files import ALTERNATIVE_NAMES, REQUIRED_COLUMNS
from prism_mesa.without_effect import OnlyWith


class SeededParams(Params):
    """Posts that are added to the posts of agents. Their authors are drawn by `size` and `position`, and take turns.

    Texts are drawn from the corpus, independently of the authors. The summary names the authors.
    """

    count: int = Field(0, ge=0, le=10_000, description="number of seeded posts")
    round: int = Field(0, ge=0, le=10_000_000, description="round of the first seeded post; then one per round")
    size: Literal["any", "small", "large"] = Field(
        "any", description="number of followers of the author; small: lowest 10 % of agents; large: highest 10 %"
    )
    position: Literal["any", "bridge", "periphery"] = Field(
        "any",
        description="share of the author's followers in other communities; bridge: highest 20 % of the authors of that "
        "size; periphery: lowest 20 %. Communities are the blocks of stochastic_block, otherwise main interests",
    )


class PostsParams(Params):
    """The texts that agents post."""

    file: UserPath | None = Field(
        None, description="file of posts with a column text (CSV, .tsv, .gz, Parquet); null: PRISM's texts"
    )
    dates: Annotated[Literal["day_first", "month_first"] | None, OnlyWith("posts.file")] = Field(
        None, description="order of day and month in dates like 01/02/2017; null: the order that fits all dates"
    )
    circulating: int = Field(
        16,
        ge=1,
        le=1_000_000,
        description="number of texts that agents can post; each round a new one replaces the oldest",
    )
    authors: Annotated[Literal["id", "rank"], OnlyWith("posts.file")] = Field(
        "id", description="how authors in the file map to agents: by id, or by rank (more posts: more followers)"
    )
    n_topics: int = Field(16, ge=2, le=512, description="number of dimensions of topic and interest vectors")
    embedder: Literal["hashing", "wordllama"] = Field(
        "hashing", description="method that computes topics from texts; wordllama needs the extra 'embeddings'"
    )
    label_weight: Share = Field(
        0.7, description="weight of a post's topic label relative to its words, if the file has topic labels"
    )
    media_share: float | None = Field(
        None,
        ge=0,
        le=1,
        description="share of texts that have media; null: as in the file. Media affect only open choices (rule, "
        "distilled model, prompts), not feeds",
    )
    seeded: Annotated[SeededParams, OnlyWith("posts.seeded.count")] = Field(default_factory=SeededParams)


class FilesParams(Params):
    """How to read the files in network.edges, posts.file and agents.profiles."""

    encoding: str = Field("utf-8", description="encoding of CSV files: utf-8, latin-1, cp1252, utf-16, ...")
    max_bytes: int = Field(
        8_000_000_000, ge=1, lt=2**63, description="maximum bytes of an unpacked file; PRISM refuses larger files"
    )
    columns: dict[str, str | None] = Field(
        default_factory=dict,
        description="names of columns in your files: {src: Source, author: user_id}; null: do not read",
    )

    @field_validator("columns")
    @classmethod
    def _check_columns(cls, names: dict[str, str | None]) -> dict[str, str | None]:
        for name, file_column in names.items():
            if name not in ALTERNATIVE_NAMES:
                near = did_you_mean(name, ALTERNATIVE_NAMES)
                raise ValueError(f"{name!r:.60} is not a column that PRISM reads.{near}")
            if file_column is None and name in REQUIRED_COLUMNS:
                raise ValueError(f"{name!r} is required: give the name of that column in your file")
        return names

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, name: str) -> str:
        try:
            codecs.lookup(name)
            "é".encode(name, "replace").decode(name, "replace")
        except (LookupError, ValueError):
            raise ValueError("give a text encoding (utf-8, latin-1, cp1252, utf-16, ...)") from None
        return name


class ClockParams(Params):
    """Simulated time."""

    start: AwareDatetime = Field(datetime(2026, 1, 1, tzinfo=UTC), description="start of round 0")
    round_minutes: float = Field(60, gt=0, le=525_600, description="simulated minutes per round")

    @field_validator("start", mode="before")
    @classmethod
    def _require_time_text(cls, start: Any) -> Any:
        if re.fullmatch(r"[-+.e\d]+", str(start)):  # pydantic would read a number as seconds since 1970
            raise ValueError("Input should be a time with its offset, such as 2026-01-01T00:00:00Z")
        return start

    @field_validator("start")
    @classmethod
    def _check_year(cls, start: datetime) -> datetime:
        try:
            start.astimezone(UTC)
        except OverflowError:
            raise ValueError("Input should be in the years 1 to 9999, also in UTC") from None
        return start


class RecordsParams(Params):
    """Shares of recorded agents or posts; all rounds and tables use the same sample."""

    transitions: float | None = Field(
        None, ge=0, le=1, description="share of agents with recorded transitions; null: all up to 100,000, else 10,000"
    )
    impressions: float | None = Field(
        None, ge=0, le=1, description="share of agents with recorded impressions; null: same as transitions"
    )
    engagements: float | None = Field(
        None, ge=0, le=1, description="share of agents with recorded engagements; null: all agents"
    )
    views: Share = Field(
        0, description="share of posts whose impressions are counted by round (table `views`); 0: no table"
    )
