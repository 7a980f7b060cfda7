"""The form in which the small embedded LLM answers: one of the agent's deeds, and a remark. In free words it rambles."""

import textwrap
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, Field, create_model

from prism_mesa.experiments.restored import Deed
from prism_mesa.reasoner.prompt import NAME_CAP, plain

_DID: Final = {"post": "posted", "like": "liked", "reply": "replied to", "reshare": "reshared"}
_TEXT_WIDTH: Final = 90


class Recollection(BaseModel):
    """An answer: what the agent says that it did, and its remark on it."""

    what: str
    remark: str = Field(json_schema_extra={"maxLength": 100})

    @property
    def text(self) -> str:
        """It in words."""
        return f"{self.what} {self.remark.strip()}".strip()


def recollection_of(deeds: Sequence[Deed]) -> type[Recollection]:
    """Return a form that leaves nothing to say but one of some deeds, or that the agent does not know."""
    said = [*dict.fromkeys(map(first_person, deeds)), "I do not know."]
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
