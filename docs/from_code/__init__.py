"""What the pages of the reference and of the model hold: made from the code whenever the site is built.

A page says where by a line of its own, `<!-- from the code: NAME -->`, with a name of `MADE`.
"""
