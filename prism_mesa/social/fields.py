"""Fields of agents and posts with their possible values, for guards and checks."""

from collections.abc import Mapping
from math import inf
from typing import Final

from prism_mesa.domain import ACTIONS, BIG_FIVE, POST_KINDS
from prism_mesa.kernels.walking.reading import FIELD_NAMES
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.population import STATE_NAMES
from prism_mesa.social.state.posts import POST_COUNTERS
from prism_mesa.statechart import Values

_COUNT: Final = Values(0, whole=True)
_BOOLEAN: Final = Values(names=(False, True))

FIELD_VALUES: Final[Mapping[str, Values]] = {
    **{f"agent.{f.name}": Values(f.low, inf if f.whole else f.high, whole=f.whole) for f in AGENT_FIELDS.values()},
    "post.relevance": Values(0, 1),
    "post.utility": Values(-1, 2),
    "agent.low_threshold": Values(-0.5, 1),
    "agent.high_threshold": Values(0, 1.5),
    **dict.fromkeys([f"agent.{trait}" for trait in BIG_FIVE], Values(1, 5)),
    **dict.fromkeys(("agent.ticks_in_state", "agent.n_unread", "agent.row"), _COUNT),
    **dict.fromkeys(("agent.scripted", "post.has_media"), _BOOLEAN),
    "agent.state": Values(names=STATE_NAMES),
    "agent.pending_action": Values(names=(*ACTIONS, None)),
    **dict.fromkeys([f"post.{name}" for name in ("post_id", "author", "round", "root", *POST_COUNTERS)], _COUNT),
    "post.kind": Values(names=POST_KINDS),
}
REGISTERS: Final = (*FIELD_NAMES, *(f"agent.{name}" for name in AGENT_FIELDS))
"""Fields that compiled guards can read; the index of a field is its register. Declared attributes follow."""
