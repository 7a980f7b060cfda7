"""What an answer in an interview refers to."""

from types import SimpleNamespace

import pytest

from prism_mesa.analysis.interview.evidence import find_references, find_unrecorded, first_person_text, make_recall_form
from prism_mesa.social.content.activity import Activity

# -- what an answer refers to ------------------------------------------------------------------------


ACTIVITIES = (
    Activity(1, "like", 4, "Ada Lopez", "Curry leaves in garlic butter"),
    Activity(2, "reply", 5, "Bo Ito", "Rain again", "Thunder without umbrellas yesterday"),
    Activity(7, "post", 6, "", "Trains"),
)


@pytest.mark.parametrize(
    ("answer", "places"),
    [
        ("I liked what Ada Lopez wrote.", [0]),
        ("Ada Lopezz and Ada wrote.", []),
        ("It was curry with garlic butter and leaves.", [0]),
        ("It was garlic butter.", []),
        ("Thunder, yesterday, no umbrellas!", [1]),
        ("In Round 7 I travelled, as in rounds 1 and 2", [0, 1, 2]),
        ("I have 7 cats.", []),
        ("", []),
    ],
)
def test_an_answer_refers_to_deeds_by_names_rounds_and_shared_words(answer, places):
    assert find_references(answer, ACTIVITIES) == [ACTIVITIES[i] for i in places]


def test_rounds_and_users_of_which_there_is_no_record_are_named():
    own = SimpleNamespace(activities=ACTIVITIES, notes=("Cy Park is nice, since round 4",), name="Me Self")
    names = ["Ada Lopez", "Bo Ito", "Cy Park", "Di Quinn", "Me Self", "42"]
    said = "Me Self met Ada Lopez, Cy Park and Di Quinn 42 times in round 1, round 4 and round 9."
    assert find_unrecorded(said, own, names) == ["round 9", "Di Quinn"]


def test_the_small_llm_can_say_nothing_but_deeds():
    form = make_recall_form(ACTIVITIES)
    assert form.model_json_schema()["properties"]["what"]["enum"] == [
        first_person_text(activity) for activity in ACTIVITIES
    ]
    assert make_recall_form([]).model_json_schema()["properties"]["what"]["enum"] == ["I do not know."]
