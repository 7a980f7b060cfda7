"""Parameters of files, simulated time, and records."""

import codecs
import re
from datetime import UTC, datetime
from typing import Any

from pydantic import AwareDatetime, Field, field_validator

from prism_mesa.errors import did_you_mean
from prism_mesa.params import Params, Share
from prism_mesa.social.params.user_files import NEEDED, OTHER_NAMES


class FilesParams(Params):
    """How to read the files in network.edges, posts.file and agents.profiles."""

    encoding: str = Field("utf-8", description="encoding of CSV files: utf-8, latin-1, cp1252, utf-16, ...")
    max_bytes: int = Field(
        8_000_000_000, ge=1, lt=2**63, description="most bytes that a file may unpack to; PRISM refuses a larger one"
    )
    columns: dict[str, str | None] = Field(
        default_factory=dict,
        description="names of columns in your files: {src: Source, dst: Target, author: user_id}; null: PRISM does not "
        "read the column",
    )

    @field_validator("columns")
    @classmethod
    def _are_columns(cls, names: dict[str, str | None]) -> dict[str, str | None]:
        for name, in_file in names.items():
            if name not in OTHER_NAMES:
                raise ValueError(f"{name!r:.60} is no column that PRISM reads.{did_you_mean(name, OTHER_NAMES)}")
            if in_file is None and name in NEEDED:
                raise ValueError(f"{name!r} is needed: give the name of that column in your file")
        return names

    @field_validator("encoding")
    @classmethod
    def _is_known(cls, name: str) -> str:
        try:
            codecs.lookup(name)
            "é".encode(name, "replace").decode(name, "replace")
        except (LookupError, ValueError):
            raise ValueError("no encoding of text (utf-8, latin-1, cp1252, utf-16, ...)") from None
        return name


class ClockParams(Params):
    """Simulated time."""

    start: AwareDatetime = Field(datetime(2026, 1, 1, tzinfo=UTC), description="start of round 0")
    round_minutes: float = Field(60, gt=0, le=525_600, description="simulated minutes per round")

    @field_validator("start", mode="before")
    @classmethod
    def _is_a_time(cls, start: Any) -> Any:
        if re.fullmatch(r"[-+.e\d]+", str(start)):  # pydantic would read a number as seconds since 1970
            raise ValueError("Input should be a time with its offset, as 2026-01-01T00:00:00Z")
        return start

    @field_validator("start")
    @classmethod
    def _is_a_time_in_utc(cls, start: datetime) -> datetime:
        try:
            start.astimezone(UTC)
        except OverflowError:
            raise ValueError("Input should lie in the years 1 to 9999 in UTC too") from None
        return start


class RecordsParams(Params):
    """Shares of agents or posts that are recorded; the drawn ones are the same in all rounds and tables."""

    transitions: float | None = Field(
        None,
        ge=0,
        le=1,
        description="share of agents whose transitions are recorded; null: all of up to 100,000 agents, of more about "
        "10,000",
    )
    impressions: float | None = Field(
        None, ge=0, le=1, description="share of agents whose impressions are recorded; null: as for transitions"
    )
    engagements: float | None = Field(
        None, ge=0, le=1, description="share of agents whose engagements are recorded; null: all"
    )
    views: Share = Field(
        0, description="share of posts whose impressions are counted by round (table `views`); 0: no table"
    )
