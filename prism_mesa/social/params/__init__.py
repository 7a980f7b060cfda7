"""The parameters of the social platform, with defaults, units and sources."""

from prism_mesa.social.params.agents import AgentsParams, ChurnParams, HomophilyParams
from prism_mesa.social.params.attributes import OpinionsParams
from prism_mesa.social.params.feed import (
    FEED_MODES,
    CandidateParams,
    FeedParams,
    SlotParams,
    UtilityParams,
    XAlgoParams,
)
from prism_mesa.social.params.interventions import CHANGEABLE, InterventionParams
from prism_mesa.social.params.network import NetworkParams, NetworkRatesParams
from prism_mesa.social.params.platform import SocialParams
from prism_mesa.social.params.world import ClockParams, FilesParams, PostsParams, RecordsParams, SeededParams

__all__ = [
    "CHANGEABLE",
    "FEED_MODES",
    "AgentsParams",
    "CandidateParams",
    "ChurnParams",
    "ClockParams",
    "FeedParams",
    "FilesParams",
    "HomophilyParams",
    "InterventionParams",
    "NetworkParams",
    "NetworkRatesParams",
    "OpinionsParams",
    "PostsParams",
    "RecordsParams",
    "SeededParams",
    "SlotParams",
    "SocialParams",
    "UtilityParams",
    "XAlgoParams",
]
