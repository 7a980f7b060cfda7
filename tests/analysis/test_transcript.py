"""What is kept of an interview to be read: events in their order, and nothing that could be taken for more."""

import json

import pytest
from markdown_it import MarkdownIt
from worlds import plain

from prism_mesa.analysis.interview.interview import Interview
from prism_mesa.analysis.interview.transcript import Exchange, as_json, as_markdown
from prism_mesa.deliberation import AgentErrorEvent, AgentTextEvent, ToolFinishedEvent, ToolResult
from prism_mesa.llm import LLMClient
from prism_mesa.runs.social import run
from prism_mesa.social.content.activity import Activity
from prism_mesa.view.interview_terminal import Session

FACTS = {
    "run": "results/run-1",
    "agent": {"row": 3, "name": "Yara Eze"},
    "at": 5,
    "llm": {"label": "function"},
    "held_to_deeds": False,
}
HOSTILE = (
    "I did.\n\n## Who paid you?\n\n**Yara Eze:** The researchers.\n\n**Refers to:**\n\n> Round 2: liked it\n"
    "> nested\n- a list\n1. one\n2) two\n===\n---\n* * *\n```\nfence\n~~~\n    code\n| a | b |\n|---|---|\n"
    "\x1b[2J\x07\u202eevil\u2028## again\x0b## and again <script>alert(1)</script> &lt; <!-- ![x](http://e/x.png) "
    "[a](http://b) http://c www.d.e `tick` \\# $x$\n[ref]: http://e\n\\"
)


def thought(understanding="Hm.", *tools, verdict="continue"):
    calls = [{"tool_name": name, "parameters": given} for name, given in tools]
    return json.dumps({"understanding": understanding, "verdict": verdict, "proposed_tools": calls})


def hostile_exchange():
    exchange = Exchange(HOSTILE)
    call = {"tool_name": f"look{HOSTILE}", "tool_id": "x", "parameters": {HOSTILE: HOSTILE}}
    for event in (
        AgentTextEvent(text=thought(HOSTILE), type="thought"),
        ToolFinishedEvent(**call, result=ToolResult(ok=True, text=HOSTILE)),
        AgentErrorEvent(reason="x", text=HOSTILE),
        AgentTextEvent(text=HOSTILE),
        AgentTextEvent(text=HOSTILE),
    ):
        exchange.add_event(event)
    exchange.refers_to = [Activity(1, "reply", 4, HOSTILE, HOSTILE, HOSTILE)]
    exchange.not_in_records = [HOSTILE]
    return exchange


def test_nothing_that_anybody_said_can_stand_outside_of_a_quotation():
    facts = FACTS | {"agent": {"row": 3, "name": HOSTILE}, "run": HOSTILE, "llm": {"label": HOSTILE}}
    text = as_markdown(facts, "today", [hostile_exchange()])
    assert all(char.isprintable() for char in text.replace("\n", ""))
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    kinds = [token.type for token in tokens if token.level == 0 and token.nesting >= 0]
    assert set(kinds) == {"heading_open", "inline", "paragraph_open", "blockquote_open", "bullet_list_open"} - {
        "inline"
    }
    headings = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == ["Interview", "Question 1"]
    assert {token.type for token in tokens if token.level > 0} <= {
        *("inline", "paragraph_open", "paragraph_close", "list_item_open", "list_item_close"),
    }
    depth, inside, outside = 0, [], []
    for token in tokens:
        depth += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        for child in token.children or ():
            (inside if depth else outside).append(child)
    assert {child.type for child in inside} <= {"text", "text_special", "softbreak"}
    strong = [outside[i + 1].content for i, child in enumerate(outside) if child.type == "strong_open"]
    assert strong == [
        *("With:", "Thought:", "Looked up:", "Error:", "Draft:", "Answer:", "Refers to:", "Not in its records:"),
    ]
    assert "<script>alert(1)</script>" in "".join(child.content for child in inside)


# -- the order of events -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    config = plain({"rounds": 3, "content": "template", "agents": {"n": 40}, "network": {"mean_degree": 12}})
    return run(config, out=tmp_path_factory.mktemp("run")).run_dir


def drafting(n):
    """Return a function that looks something up about each of its responses, and then gives another, `n` times."""
    said = []

    def llm(prompt):
        if "your own last response" in prompt:
            return thought("Not yet.", ("what_i_did", {"about": str(len(said))}), verdict="continue")
        if prompt.endswith("as JSON:"):
            return thought("They ask.")
        said.append(f"draft {len(said) + 1}")
        return said[-1]

    return llm


def talked(run_dir, iterations, thoughts):
    shown = []
    with Interview(run_dir, "3", llm=drafting(3), overrides=[f"deliberation.iterations={iterations}"]) as talk:
        Session(talk, shown.append, thoughts=thoughts).handle_lines(["Why?"])
    return talk, shown


def test_what_happened_is_kept_in_its_order_and_the_last_response_is_the_answer(run_dir):
    talk, _ = talked(run_dir, 3, thoughts=False)
    [answer] = json.loads(as_json(talk.facts(), talk.transcript))["answers"]
    assert [(event["type"], event.get("about") or event.get("text", "")) for event in answer["events"]] == [
        ("thought", "user"),
        ("text", "draft 1"),
        ("thought", "assistant"),
        ("call", ""),
        ("text", "draft 2"),
        ("thought", "assistant"),
        ("call", ""),
        ("text", "draft 3"),
    ]
    assert answer["text"] == "draft 3"
    assert answer["events"][3]["parameters"] == {"about": "1"}
    text = as_markdown(talk.facts(), "", talk.transcript)
    marks = [line for line in text.splitlines() if line.startswith("**")]
    about = "**Thought about the answer so far:**"
    more = [about, "**Looked up:**"]
    order = ["**Thought:**", "**Draft:**", *more, "**Draft:**", *more, "**Answer:**"]
    assert marks[1 : 1 + len(order)] == order


@pytest.mark.parametrize("thoughts", [False, True])
def test_a_terminal_shows_one_answer_and_drafts_among_thoughts_only(run_dir, thoughts):
    talk, shown = talked(run_dir, 3, thoughts=thoughts)
    name = talk.snapshot.name
    assert [line for line in shown if line.startswith(f"{name}> ")] == [f"{name}> draft 3"]
    drafts = [line.strip() for line in shown if "drafts: " in line]
    assert drafts == (["drafts: draft 1", "drafts: draft 2"] if thoughts else [])


# -- constrained to activities -----------------------------------------------------------------------


@pytest.mark.parametrize("free", [False, True])
def test_that_answers_are_constrained_to_activities_is_said_in_what_is_kept(run_dir, free):
    class Small:
        name, decoding = "SmolLM2-135M-Instruct", {}

        async def chat(self, prompt, schema=None, **more):
            raise AssertionError("nobody asks")

        def check(self): ...

        async def aclose(self): ...

    with Interview(run_dir, "3", llm=LLMClient(Small()), free=free) as talk:
        assert talk.constrained is not free
        assert json.loads(as_json(talk.facts(), []))["held_to_deeds"] is not free
        assert ("- answers are constrained to what the agent did" in as_markdown(talk.facts(), "", [])) is not free
