"""The oracle: agents' questions, prompts, and the reasoners that answer: an LLM, the rule, a distilled model.

`__init__.pyi` lists the names. Each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
