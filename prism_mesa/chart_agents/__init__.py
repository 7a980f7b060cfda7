"""Chart agents for any Mesa model. `__init__.pyi` lists the names."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
