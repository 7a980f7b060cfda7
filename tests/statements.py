"""Reading source files for what stands in their statements, without looking at every node of their syntax trees."""


def statements_of(node):
    """Yield all statements in a module or a statement: expressions, which are most of its nodes, hold none."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for one in getattr(node, name, ()):
            yield one
            yield from statements_of(one)
