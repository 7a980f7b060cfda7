from .agent import EconLLMAgent as EconLLMAgent
from .llm_agent import Action as Action
from .llm_agent import LLMAgent as LLMAgent
from .llm_agent import LLMFailureException as LLMFailureException
from .observation import GlobalState as GlobalState
from .observation import NationState as NationState
from .observation import SimulationState as SimulationState
from .reading import PolicyDecision as PolicyDecision
