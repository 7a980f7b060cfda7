"""What a post is worth to a reader: parameters."""

from pydantic import Field

from prism_mesa.params import Params


class UtilityParams(Params):
    """What a post is worth to a reader, in units of relevance; an agent compares it with its band.

    ``weight * relevance + sensitivity * (reason + reshared - theta * log(1 + age) + mood)``: random utility (McFadden
    1974) with one part that lies in what a post is about, and the others in log-odds of engaging. The reason is ``g *
    appeal``, or for posts by a close tie the soft maximum ``log(exp(g * appeal) + exp(closeness))``: a reader engages
    because the post appeals or because a friend wrote it. Age is that of the root, in hours. With a sensitivity of 0
    utility is relevance.
    """

    weight: float = Field(0.09, ge=0, le=100, description="weight of relevance")
    sensitivity: float = Field(
        0.03, ge=0, le=10, description="relevance that one log-odds is worth; 0: utility is relevance"
    )
    appeal_sigma: float = Field(
        3.0, ge=0, le=10, description="appeal: sigma of the log-odds of a root, whose odds are lognormal with mean 1"
    )
    gamma: float = Field(
        0.6,
        ge=0,
        le=1,
        description="g, the share of the appeal that is left after a reshare, and for who does not follow the author; "
        "1 for followers of the author",
    )
    reshared: float = Field(
        -1.0,
        ge=-20,
        le=20,
        description="log-odds that each reshare has more, whatever the reason to engage; below 0 it has less",
    )
    theta: float = Field(0.1, ge=0, le=10, description="log-odds that a post loses with each log(1 + age in hours)")
    closeness: float | None = Field(
        4.0,
        ge=-20,
        le=20,
        description="log-odds of engaging with a post because a close tie (network.close_ties) wrote it, whether or "
        "not it appeals; null: that is no reason",
    )
    mood: float = Field(
        1.0, ge=0, le=10, description="scale of the logistic draw of each agent and root, in log-odds; 0: none"
    )
    per_source: float = Field(
        0.0, ge=-20, le=20, description="log-odds more for each earlier time the reader read its root (feed.repeats)"
    )
