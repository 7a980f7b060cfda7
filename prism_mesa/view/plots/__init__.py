"""Figures, one function for each question: of a run, a live model, a study, or several of these.

Each returns a matplotlib Figure, and draws into `ax` if you pass one. `__init__.pyi` lists the public names; each is
imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
