"""Rows fired over columns."""


def by_columns(fired, row):
    taken, opened = fired.transition_indices[row], fired.option_indices[row]
    assert taken < 0 or opened < 0
    if taken >= 0:
        return ("takes", fired.transitions[taken].target), int(taken)
    return (("asks", fired.option_sets[opened]) if opened >= 0 else ("nothing",)), None
