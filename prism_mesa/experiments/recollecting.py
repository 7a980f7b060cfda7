"""The form in which the small embedded LLM answers: one of the agent's deeds. In free words it only rambles."""

import textwrap
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, Field, JsonValue, create_model

from prism_mesa.experiments.restored import Deed
from prism_mesa.reasoner.prompt import NAME_CAP, plain

_DID: Final = {"post": "posted", "like": "liked", "reply": "replied to", "reshare": "reshared"}
_TEXT_WIDTH: Final = 90


class Recollection(BaseModel):
    """An answer: what the agent says that it did."""

    what: str


def recollection_of(deeds: Sequence[Deed]) -> type[Recollection]:
    """Return a form that leaves nothing to say but one of some deeds; without any, that the agent does not know."""
    said: list[JsonValue] = [*dict.fromkeys(map(first_person, deeds))] or ["I do not know."]
    return create_model("Recollection", __base__=Recollection, what=(str, Field(json_schema_extra={"enum": said})))


def first_person(deed: Deed) -> str:
    """Return a deed as the agent says it.

    >>> first_person(Deed(3, "reply", 17, "Ada Lopez", "Rain again.", "It suits me."))
    'In round 3 I replied to Ada Lopez (Rain again.): It suits me.'
    """
    text, words = (
        textwrap.shorten(plain(said, 400), _TEXT_WIDTH, placeholder=" ...") for said in (deed.text, deed.words)
    )
    if deed.action == "post":
        return f"In round {deed.round} I posted: {text}"
    whose = plain(deed.author, NAME_CAP) + ("" if deed.action == "reply" else "'s post")
    return f"In round {deed.round} I {_DID[deed.action]} {whose} ({text})" + (f": {words}" if words else ".")
