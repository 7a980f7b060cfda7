"""Interviews: the talk, tools, the small LLM, and the command."""

import io
import json
from hashlib import sha256

import pytest
from worlds import plain

from prism_mesa.analysis.interview.evidence import first_person_text
from prism_mesa.analysis.interview.interview import ACTIVITIES_SHOWN, Interview
from prism_mesa.analysis.interview.tools import RecallTools
from prism_mesa.deliberation import AgentErrorEvent
from prism_mesa.errors import AgentError
from prism_mesa.llm import Ledger, LLMClient
from prism_mesa.runs.archive import RunRecords
from prism_mesa.runs.social import run
from prism_mesa.social.content.activity import activity_line

THOUGHT = '{"understanding": "They ask about me.", "verdict": "complete"}'


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    config = plain({"rounds": 5, "content": "template", "agents": {"n": 40}, "network": {"mean_degree": 12}})
    return run(config, out=tmp_path_factory.mktemp("run")).run_dir


@pytest.fixture(scope="module")
def busiest(run_dir):
    records = RunRecords(run_dir)
    return max((records.snapshot(row) for row in range(40)), key=lambda own: len(own.activities))


class Player:
    """A function that plays the LLM: thinks as told, then says what it is told; keeps the prompts."""

    def __init__(self, *said, thought=THOUGHT):
        self.said = list(said) or ["I liked something."]
        self.thought = thought
        self.prompts = []

    def __call__(self, prompt):
        self.prompts.append(prompt)
        if prompt.endswith("as JSON:"):
            return self.thought
        return self.said.pop(0) if len(self.said) > 1 else self.said[0]


def bytes_of(folder):
    return {str(f): sha256(f.read_bytes()).hexdigest() for f in sorted(folder.rglob("*")) if f.is_file()}


# -- the talk ----------------------------------------------------------------------------------------


def test_prompts_hold_profile_and_deeds_and_the_talk_so_far(run_dir, busiest):
    llm = Player("First answer.", "Second answer.")
    with Interview(run_dir, str(busiest.row), llm=llm) as talk:
        kinds = [event.type for event in talk.chat_stream("What did you do?")]
        list(talk.chat_stream("And why?"))
    assert kinds == ["thought", "text"]
    for prompt in llm.prompts:
        assert busiest.profile in prompt
        for activity in busiest.activities[-ACTIVITIES_SHOWN:]:
            assert activity_line(activity) in prompt
    assert "<<< What did you do? >>>" in llm.prompts[0]
    assert "You said: <<< First answer. >>>" in llm.prompts[-1]


def test_the_run_is_the_same_byte_for_byte_and_an_empty_interview_keeps_nothing(run_dir, tmp_path):
    before = bytes_of(run_dir)
    with Interview(run_dir, "3", llm=Player(), out=tmp_path / "out") as talk:
        assert talk.save() is None
        assert not (tmp_path / "out").exists()
        list(talk.chat_stream("What did you do?"))
        assert talk.save() is not None
    assert bytes_of(run_dir) == before


def test_before_the_run_nothing_is_told_and_a_round_cuts_history(run_dir, busiest):
    for at in (-1, 1):
        llm = Player(thought='{"understanding": "x", "proposed_tools": [{"tool_name": "what_i_did"}]}')
        with Interview(run_dir, str(busiest.row), at=at, llm=llm) as talk:
            list(talk.chat_stream("What did you do?"))
        later = [activity for activity in busiest.activities if activity.round > at]
        assert later
        assert not any(activity_line(activity) in prompt for activity in later for prompt in llm.prompts)
        assert ("You have not been on the platform yet" in llm.prompts[0]) == (at < 0)


def test_what_is_kept_can_be_read_again(run_dir, busiest, tmp_path):
    activity = next(activity for activity in busiest.activities if activity.action == "reply")
    llm = Player(f"I replied to {activity.author}, and in round 77 I slept.")
    with Interview(run_dir, str(busiest.row), at=4, llm=llm, out=tmp_path) as talk:
        list(talk.chat_stream("Whom did you talk to?"))
        folder = talk.save()
    kept = json.loads((folder / "transcript.json").read_text())
    [answer] = kept["answers"]
    assert (kept["agent"], kept["at"], kept["run"]) == ({"row": busiest.row, "name": busiest.name}, 4, str(run_dir))
    assert (answer["question"], answer["text"]) == ("Whom did you talk to?", llm.said[0])
    assert activity.words in [found["words"] for found in answer["refers_to"]]
    assert answer["not_in_records"] == ["round 77"]
    text = (folder / "transcript.md").read_text().replace("\\", "")
    for said in (f"> {busiest.name}\n", f"run: {run_dir}", "after round 4", talk.llm.label, f"> {llm.said[0]}\n"):
        assert said in text
    assert "**Not in its records:**\n\n> round 77\n" in text
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["system"], manifest["status"], manifest["at"]) == ("interview", "done", 4)
    assert manifest["packages"]["prism-mesa"]
    with Ledger(folder / "decisions.sqlite", read_only=True) as ledger:
        assert [row.prompt for row in ledger.answers()] == llm.prompts
        assert {(row.round, row.agent) for row in ledger.asked()} == {(4, busiest.row)}


def test_a_failing_llm_is_an_event_and_the_talk_goes_on(run_dir):
    def llm(prompt):
        if "Why?" in prompt and "How?" not in prompt:
            raise ConnectionError("out of order")
        return THOUGHT if prompt.endswith("as JSON:") else "Because."

    with Interview(run_dir, "3", llm=LLMClient(llm)) as talk:
        with pytest.raises(AgentError, match="is empty or not a string"):
            talk.chat_stream(" ")
        events = [list(talk.chat_stream(question)) for question in ("When?", "Why?", "How?")]
    assert [exchange.text for exchange in talk.transcript] == ["Because.", "", "Because."]
    assert {type(event) for event in events[1]} == {AgentErrorEvent}
    assert talk.transcript[1].errors[0].startswith("ConnectionError: ")


def test_what_a_ledger_does_not_hold_is_an_error_event(run_dir, tmp_path):
    with Interview(run_dir, "3", llm=Player(), out=tmp_path) as talk:
        list(talk.chat_stream("What?"))
        ledger = talk.save() / "decisions.sqlite"
    again = ["reasoner.ledger=replay", f"reasoner.ledger_path={ledger}"]
    with Interview(run_dir, "3", overrides=again) as talk:
        assert [event.type for event in talk.chat_stream("What?")] == ["thought", "text"]
        [error] = list(talk.chat_stream("Something else?"))
    assert isinstance(error, AgentErrorEvent)
    assert error.reason == "not-recorded"


# -- tools -------------------------------------------------------------------------------------------


def test_tools_show_the_platform_as_it_stood(run_dir, busiest):
    records = RunRecords(run_dir)
    back = RecallTools(records, records.snapshot(busiest.row, 2))
    late = next(i for i, round_ in enumerate(records.posts.round) if round_ > 2)
    with pytest.raises(AgentError, match=f"there is no post {late} "):
        back.read_thread(late)
    reply = next(i for i in range(late) if records.posts.kind[i] == "reply")
    parent = int(records.posts.parent[reply])
    thread = back.read_thread(reply).splitlines()
    assert [line.split()[1] for line in thread[:2]] == [str(parent), str(reply)]
    assert f"(reply of post {parent})" in thread[1]
    words = " ".join(records.posts.shown_text(reply).split()[-2:])
    found = back.search_posts(words).splitlines()
    assert 1 <= len(found) <= 5
    assert all(int(line.split()[1]) < late for line in found)
    assert back.look_at_profile(4).startswith(f"<<< {records.names[4]} >>> (agent 4) likes <<< ")
    with pytest.raises(AgentError, match=r"there is no user 40 \(users: 0 \.\. 39\)"):
        back.look_at_profile(40)
    activity = records.snapshot(busiest.row, 2).activities[0]
    assert activity_line(activity) in back.what_i_did(f"{activity.author} {activity.text}")
    assert back.what_i_did("zzz") == "You did nothing of the kind."


def test_the_small_llm_chooses_among_the_deeds_that_fit_a_question_best(run_dir, busiest):
    activity = next(activity for activity in busiest.activities if activity.action == "reply")
    llm = Player(json.dumps({"what": first_person_text(activity)}))
    with Interview(run_dir, str(busiest.row), llm=LLMClient(llm, kind="embedded")) as talk:
        talk.constrained = True
        events = list(talk.chat_stream(f"Did you reply to {activity.author} in round {activity.round}?"))
        schema = talk.context.response_type.model_json_schema()
        assert first_person_text(activity) in schema["properties"]["what"]["enum"]
    assert events[1].text == talk.transcript[0].text == first_person_text(activity)
    assert activity in talk.transcript[0].refers_to


# -- the command -------------------------------------------------------------------------------------


@pytest.fixture
def talk(prism, monkeypatch, run_dir):
    """Call `prism interview` on the run, with a function as the LLM and lines on standard input."""

    def call(*arguments, said=("I liked something.",), lines=b"", llm=None):
        player = LLMClient(llm or Player(*said))
        monkeypatch.setattr("prism_mesa.analysis.interview.interview.make_llm", lambda config, overrides, **how: player)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
        return prism("interview", run_dir, *arguments)

    return call


def test_a_piped_session_answers_line_by_line_until_quit(talk, busiest, tmp_path):
    lines = b"What?\n\n/thoughts\nWhy \xff?\n/did\n/help\n/nope\n/quit\nnever asked\n"
    code, out, err = talk(busiest.name, lines=lines, said=("One.\nTwo\x1b[2J", "Three."))
    assert code == 0
    shown = out.splitlines()
    assert shown[:3] == ["you> What?", f"{busiest.name}> One.", " " * (len(busiest.name) + 2) + "Two [2J"]
    assert "thoughts are shown from now on" in out
    assert "    thinks: They ask about me." in shown
    assert shown.index("    thinks: They ask about me.") > shown.index("you> /thoughts")
    assert sum(line.startswith("Round ") for line in shown) == min(len(busiest.activities), 40)
    assert "/nope: no such command" in out
    assert "never asked" not in out
    assert "\x1b" not in out
    assert "after round 4, played by function" in err
    [folder] = (tmp_path / "results").iterdir()
    assert f"kept: results/{folder.name}/transcript.md" in err


def test_json_is_one_object_and_nothing_else(talk, tmp_path):
    code, out, _ = talk("3", "--json", "--at", "-1", "--ask", "A?", "--ask", "B?", "--iterations", "2", "--out", "o")
    told = json.loads(out)
    assert (code, out.count("\n"), told["at"], told["agent"]["row"]) == (0, 1, -1, 3)
    assert [answer["question"] for answer in told["answers"]] == ["A?", "B?"]
    assert told["limits"]["iterations"] == 2
    assert (tmp_path / told["folder"] / "transcript.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nobody",), "no agent 'nobody'"),
        (("3", "--at", "9"), "no round 9"),
        (("3", "agents.n=4"), "the run has ended"),
        (("3", "--out", "file"), "is not a folder"),
        (("3", "--ask", ""), "--ask"),
        (("3", "deliberation.notes_told=3"), "deliberation.notes_told has no effect"),
    ],
)
def test_bad_input_is_one_line(talk, tmp_path, arguments, message):
    (tmp_path / "file").write_text("")
    code, out, err = talk(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
