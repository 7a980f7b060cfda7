"""PRISM on Mesa: social platforms whose agents are statecharts, and nations; an LLM decides only what is left open.

The public names stand in `__init__.pyi`. Each is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
