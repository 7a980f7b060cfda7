"""The oracle: questions of agents, prompts, and who answers them: an LLM, the rule, a distilled model.

The names stand in `__init__.pyi`. Each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
