"""Nations whose policies are set in words: an economy, typed policies, and a validator (names: `__init__.pyi`)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
