"""The fields of agents and posts that have a column or known values, and these values: once, for guards and checks."""

from collections.abc import Mapping
from typing import Final

from prism_mesa.domain import ACTIONS, BIG_FIVE, POST_KINDS
from prism_mesa.social.state.population import STATE_NAMES
from prism_mesa.social.state.posts import COUNTED
from prism_mesa.statechart import Values

_SHARE: Final = Values(0, 1)
_COUNT: Final = Values(0, whole=True)
_EITHER: Final = Values(names=(False, True))

FIELD_VALUES: Final[Mapping[str, Values]] = {
    **dict.fromkeys(("agent.engagement_threshold", "agent.activity", "agent.post_rate", "post.relevance"), _SHARE),
    "post.utility": Values(-1, 2),
    "agent.low_threshold": Values(-0.5, 1),
    "agent.high_threshold": Values(0, 1.5),
    **dict.fromkeys([f"agent.{trait}" for trait in BIG_FIVE], Values(1, 5)),
    "agent.timeout_threshold": Values(1, whole=True),
    **dict.fromkeys(("agent.ticks_in_state", "agent.n_unread", "agent.row"), _COUNT),
    **dict.fromkeys(("agent.scripted", "post.has_media"), _EITHER),
    "agent.state": Values(names=STATE_NAMES),
    "agent.pending_action": Values(names=(*ACTIONS, None)),
    **dict.fromkeys([f"post.{name}" for name in ("post_id", "author", "round", "root", *COUNTED)], _COUNT),
    "post.kind": Values(names=POST_KINDS),
}
