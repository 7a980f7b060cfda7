"""The parameters of the social platform, with defaults, units and sources."""

from prism_mesa.social.params.agents import AgentsParams as AgentsParams
from prism_mesa.social.params.agents import ChurnParams as ChurnParams
from prism_mesa.social.params.agents import HomophilyParams as HomophilyParams
from prism_mesa.social.params.attributes import OpinionsParams as OpinionsParams
from prism_mesa.social.params.feed import FEED_MODES as FEED_MODES
from prism_mesa.social.params.feed import CandidateParams as CandidateParams
from prism_mesa.social.params.feed import FeedParams as FeedParams
from prism_mesa.social.params.feed import SlotParams as SlotParams
from prism_mesa.social.params.feed import UtilityParams as UtilityParams
from prism_mesa.social.params.feed import XAlgoParams as XAlgoParams
from prism_mesa.social.params.interventions import CHANGEABLE as CHANGEABLE
from prism_mesa.social.params.interventions import InterventionParams as InterventionParams
from prism_mesa.social.params.network import NetworkParams as NetworkParams
from prism_mesa.social.params.network import NetworkRatesParams as NetworkRatesParams
from prism_mesa.social.params.platform import SocialParams as SocialParams
from prism_mesa.social.params.world import ClockParams as ClockParams
from prism_mesa.social.params.world import FilesParams as FilesParams
from prism_mesa.social.params.world import PostsParams as PostsParams
from prism_mesa.social.params.world import RecordsParams as RecordsParams
from prism_mesa.social.params.world import SeededParams as SeededParams
