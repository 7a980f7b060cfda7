"""Figures of runs, live models and studies, with one function for each question.

Each function returns a matplotlib Figure that is `width` centimetres wide: 8.5 and 17 suit one and two columns of a
page. With `ax`, a figure with one panel is drawn into your axes. `__init__.pyi` lists the public names; each is
imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
