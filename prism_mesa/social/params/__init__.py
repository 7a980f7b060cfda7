"""The parameters of the social platform, with defaults, units and sources."""

from prism_mesa.social.params.agents import AgentsParams
from prism_mesa.social.params.feed import FEED_MODES, CandidateParams, FeedParams, XAlgoParams
from prism_mesa.social.params.interventions import CHANGEABLE, InterventionParams
from prism_mesa.social.params.network import NetworkParams, NetworkRatesParams
from prism_mesa.social.params.platform import SocialParams
from prism_mesa.social.params.posts import PostsParams, SeededParams
from prism_mesa.social.params.utility import UtilityParams
from prism_mesa.social.params.world import ClockParams, FilesParams, RecordsParams

__all__ = [
    "CHANGEABLE",
    "FEED_MODES",
    "AgentsParams",
    "CandidateParams",
    "ClockParams",
    "FeedParams",
    "FilesParams",
    "InterventionParams",
    "NetworkParams",
    "NetworkRatesParams",
    "PostsParams",
    "RecordsParams",
    "SeededParams",
    "SocialParams",
    "UtilityParams",
    "XAlgoParams",
]
