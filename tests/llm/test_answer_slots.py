"""The queue of the stand-in for Ollama: so many at a time, the rest in order of arrival."""

from stand_in.slots import AnswerSlots


class Noted:
    """Work that notes when it began."""

    def __init__(self):
        self.began = None

    def begin(self, at):
        self.began = at


def admitted(slots, *times):
    """Return work that came at these times and was admitted."""
    works = [Noted() for _ in times]
    assert [slots.admit(work, at) for work, at in zip(works, times, strict=True)] == [True] * len(times)
    return works


def test_work_begins_when_it_comes_or_waits_in_order_and_what_finds_no_room_is_sent_away():
    slots = AnswerSlots(2, 1)
    first, second, third = admitted(slots, 1.0, 2.0, 3.0)
    assert [work.began for work in (first, second, third)] == [1.0, 2.0, None]
    assert not slots.admit(Noted(), 4.0)
    assert (slots.busy, slots.max_busy, slots.n_waiting) == (2, 2, 1)


def test_a_slot_that_is_free_goes_to_who_has_waited_longest():
    slots = AnswerSlots(1, 2)
    _, earlier, later = admitted(slots, 1.0, 2.0, 3.0)
    slots.finish(5.0)
    assert (earlier.began, later.began, slots.busy, slots.n_waiting) == (5.0, None, 1, 1)


def test_work_begins_no_earlier_than_it_came():
    slots = AnswerSlots(1, 1)
    _, waits = admitted(slots, 1.0, 8.0)
    slots.finish(5.0)
    assert waits.began == 8.0


def test_a_slot_that_nobody_waits_for_is_free_again():
    slots = AnswerSlots(1, 0)
    admitted(slots, 1.0)
    slots.finish(2.0)
    assert (slots.busy, slots.max_busy) == (0, 1)
    assert admitted(slots, 3.0)[0].began == 3.0


def test_with_fewer_slots_than_are_in_use_the_next_begins_when_one_of_those_left_is_free():
    slots = AnswerSlots(2, 1)
    *_, waits = admitted(slots, 1.0, 1.0, 2.0)
    slots.n = 1
    slots.finish(3.0)
    assert (waits.began, slots.busy) == (None, 1)
    slots.finish(4.0)
    assert (waits.began, slots.busy) == (4.0, 1)


def test_work_that_is_withdrawn_is_not_begun():
    slots = AnswerSlots(1, 2)
    _, gone, stays = admitted(slots, 1.0, 1.0, 2.0)
    slots.withdraw(gone)
    slots.finish(3.0)
    assert (gone.began, stays.began) == (None, 3.0)
