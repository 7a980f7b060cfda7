"""Paths through the loop: limits, what the LLM says, and the events that come of it."""

from turn_events import call, error, finished, no_answer, says, started, thinks, thought

SPENT = error("budget", "the limit of this turn is used up")
NO_LOOK = error("budget", "look: the limit of this turn is used up")
AGAIN = error("repeated-call", "look: was already called like that in this turn")
TOO_MANY = error("too-many-calls", "look: one call too many in this iteration")
LOOK = call("look", bed=1)
OTHER = call("look", bed=2)
MEND = call("look", bed=3)
SEEN = [started("reasoning_1_1", "look", bed=1), finished("reasoning_1_1", "look", "tomatoes in bed 1", bed=1)]
SHED = "ValueError: the shed is locked"
NO_BED = "bed: Input should be a valid integer, unable to parse string as an integer, not 'first'"


PATHS = {
    "respond at once": (
        {},
        [thought("Hm."), "Yes.", thought("Fine.")],
        [thinks("Hm."), says("Yes."), thinks("Fine.")],
    ),
    "tools, then respond": (
        {},
        [thought("Hm.", LOOK, OTHER), "Tomatoes.", thought("Fine.")],
        [
            thinks("Hm.", LOOK, OTHER),
            *SEEN,
            started("reasoning_1_2", "look", bed=2),
            finished("reasoning_1_2", "look", "tomatoes in bed 2", bed=2),
            says("Tomatoes."),
            thinks("Fine."),
        ],
    ),
    "self-correction": (
        {},
        [thought("Hm.", LOOK), "Beans.", thought("Not so.", OTHER), "Tomatoes.", thought("Fine.")],
        [
            thinks("Hm.", LOOK),
            *SEEN,
            says("Beans."),
            thinks("Not so.", OTHER),
            started("reasoning_2_1", "look", bed=2),
            finished("reasoning_2_1", "look", "tomatoes in bed 2", bed=2),
            says("Tomatoes."),
            thinks("Fine."),
        ],
    ),
    "a tool that fails": (
        {},
        [thought("Hm.", call("fetch", what="hoe"), LOOK), "It is locked.", thought("Fine.")],
        [
            thinks("Hm.", call("fetch", what="hoe"), LOOK),
            started("reasoning_1_1", "fetch", what="hoe"),
            finished("reasoning_1_1", "fetch", SHED, "ValueError", what="hoe"),
            started("reasoning_1_2", "look", bed=1),
            finished("reasoning_1_2", "look", "tomatoes in bed 1", bed=1),
            says("It is locked."),
            thinks("Fine."),
        ],
    ),
    "parameters that are wrong, then right": (
        {},
        [thought("Hm.", call("look", bed="first")), "Which?", thought("One.", LOOK), "Tomatoes.", thought("Fine.")],
        [
            thinks("Hm.", call("look", bed="first")),
            started("reasoning_1_1", "look", bed="first"),
            finished("reasoning_1_1", "look", NO_BED, "bad-parameters", bed="first"),
            says("Which?"),
            thinks("One.", LOOK),
            started("reasoning_2_1", "look", bed=1),
            finished("reasoning_2_1", "look", "tomatoes in bed 1", bed=1),
            says("Tomatoes."),
            thinks("Fine."),
        ],
    ),
    "ever new calls, until the iterations are used up": (
        {"iterations": 2},
        [thought("Hm.", LOOK), "One.", thought("More!", OTHER), "Two."],
        [
            thinks("Hm.", LOOK),
            *SEEN,
            says("One."),
            thinks("More!", OTHER),
            started("reasoning_2_1", "look", bed=2),
            finished("reasoning_2_1", "look", "tomatoes in bed 2", bed=2),
            says("Two."),
        ],
    ),
    "the same call for ever": (
        {},
        [thought("Hm.", LOOK), "One.", thought("More!", LOOK)],
        [thinks("Hm.", LOOK), *SEEN, says("One."), thinks("More!", LOOK), AGAIN],
    ),
    "a call that is new beside one that is not": (
        {},
        [thought("Hm.", LOOK), "One.", thought("More!", LOOK, OTHER), "Two.", thought("More!", OTHER, LOOK)],
        [
            thinks("Hm.", LOOK),
            *SEEN,
            says("One."),
            thinks("More!", LOOK, OTHER),
            AGAIN,
            started("reasoning_2_2", "look", bed=2),
            finished("reasoning_2_2", "look", "tomatoes in bed 2", bed=2),
            says("Two."),
            thinks("More!", OTHER, LOOK),
            AGAIN,
            AGAIN,
        ],
    ),
    "more calls than an iteration may have": (
        {"tool_calls": 1},
        [thought("Hm.", LOOK, OTHER, MEND), "One.", thought("Fine.")],
        [thinks("Hm.", LOOK, OTHER, MEND), *SEEN, TOO_MANY, TOO_MANY, says("One."), thinks("Fine.")],
    ),
    "tokens are spent: no tool, no further thought, but a response": (
        {"tokens": 1},
        [thought("Hm.", LOOK), "Perhaps."],
        [thinks("Hm.", LOOK), NO_LOOK, says("Perhaps."), SPENT],
    ),
    "a thought that is malformed, and then is not": (
        {},
        ["Sure!", thought("Hm."), "Yes.", '{"plan": 7}', thought("Fine.")],
        [thinks("Hm."), says("Yes."), thinks("Fine.")],
    ),
    "malformed reasoning: no JSON": (
        {},
        ["Sure!", "Sure!", "Yes.", "Sure!", "Sure!"],
        [no_answer("unparsable"), says("Yes."), no_answer("unparsable")],
    ),
    "the LLM fails at the thought of its response": (
        {},
        [thought("Hm."), "Yes.", RuntimeError("broken")],
        [thinks("Hm."), says("Yes."), no_answer("RuntimeError")],
    ),
    "the LLM fails at the response": (
        {},
        [thought("Hm.", LOOK), RuntimeError("broken")],
        [thinks("Hm.", LOOK), *SEEN, no_answer("RuntimeError", "response")],
    ),
    "the LLM fails at the second response: the first stands": (
        {},
        [thought("Hm."), "Beans.", thought("Not so.", LOOK), RuntimeError("broken")],
        [
            thinks("Hm."),
            says("Beans."),
            thinks("Not so.", LOOK),
            started("reasoning_2_1", "look", bed=1),
            finished("reasoning_2_1", "look", "tomatoes in bed 1", bed=1),
            no_answer("RuntimeError", "response"),
        ],
    ),
}


ANSWERS = (thought("Hm.", LOOK), "Beans.", thought("Not so.", OTHER), "Tomatoes.", thought("Fine."))
