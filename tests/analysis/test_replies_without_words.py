"""A reply without words quotes the post above it: whatever tells of it says who wrote what it quotes."""

import pytest
from worlds import plain

from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.why import why
from prism_mesa.analysis.interview.evidence import first_person_text
from prism_mesa.analysis.interview.tools import RecallTools
from prism_mesa.runs.archive import RunRecords
from prism_mesa.runs.config import make_config
from prism_mesa.runs.run_files import read_table
from prism_mesa.runs.social import run
from prism_mesa.social.content.activity import activity_line, post_lines, recent_activities
from prism_mesa.social.content.drafts import Draft, _situation
from prism_mesa.social.model import SocialModel

CONFIG = make_config(
    plain(
        {
            "agents": {"n": 40, "activity": 1.0, "post_rate": 0.1, "threshold_mean": 0.3},
            "network": {"mean_degree": 15},
            "rounds": 6,
        }
    )
)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    return RunRecords(run(CONFIG, out=tmp_path_factory.mktemp("runs")).run_dir)


@pytest.fixture(scope="module")
def model():
    model = SocialModel(CONFIG)
    for _ in range(6):
        model.step()
    yield model
    model.close()


@pytest.fixture(scope="module")
def posts(records):
    return read_table(records.run_dir, "posts")


@pytest.fixture(scope="module")
def writers(posts, records):
    """Replies without words, and the name of who wrote the text that each quotes."""

    def writer(post):
        while posts["kind"][post] != "post":
            post = int(posts["parent"][post])
        return records.names[int(posts["author"][post])]

    silent = posts.index[(posts["kind"] == "reply") & posts["text"].isna()]
    return {int(post): writer(int(post)) for post in silent}


def quoting(records, writers, posts):
    """Return what agents did to replies without words: (row, activity, whose text it is)."""
    done = [(row, one) for row in range(records.n_agents) for one in records.snapshot(row).activities]
    quotes = [(row, one, writers[one.post]) for row, one in done if one.action != "post" and one.post in writers]
    quotes = [(row, one, writer) for row, one, writer in quotes if writer != one.author]
    assert len(quotes) > 10
    return quotes


def test_what_an_agent_did_to_one_names_both_authors(records, writers, posts):
    for _, activity, writer in quoting(records, writers, posts):
        assert (activity.quotes, activity.text in set(posts["text"])) == (writer, True)
        line = activity_line(activity)
        assert line.index(f"<<< {activity.author} >>>'s post") < line.index(f"quotes <<< {writer} >>>: <<<")
        assert f"(quoting {writer}: " in first_person_text(activity)


def test_tools_of_an_interview_name_who_wrote_what_it_quotes(records, writers):
    snapshot = records.snapshot(0)
    tools = RecallTools(records, snapshot)
    there = [post for post in writers if records.posts.round[post] <= snapshot.last_round]
    for post in there[:20]:
        line = next(line for line in tools.read_thread(post).splitlines() if line.startswith(f"Post {post} "))
        assert f"quotes <<< {writers[post]} >>>: <<<" in line


def test_agents_are_told_who_wrote_what_it_quotes(model, writers):
    platform = model.platform
    for post, line in zip(writers, post_lines(platform, list(writers), 0), strict=True):
        assert f"round {platform.posts.written[post]} (reply" in line
        assert f"no words; it quotes <<< {writers[post]} >>>: <<<" in line
        assert f"which quotes <<< {writers[post]} >>>." in _situation(platform, Draft(1, 0, post, "reply", ""))
    done = [one for row in range(40) for one in recent_activities(platform, row, 50) if one.post in writers]
    about = [one for one in done if one.action != "post"]
    assert about
    assert all(one.quotes == writers[one.post] for one in about)


def test_agents_are_told_who_wrote_what_a_reshare_passes_on(model):
    posts, names = model.posts, model.population.names
    reshares = [post for post in range(len(posts)) if posts.kind[post] == 2]
    assert reshares
    for post, line in zip(reshares, post_lines(model.platform, reshares, 0), strict=True):
        assert f"no words; it quotes <<< {names[posts.author[posts.origin(post)]]} >>>: <<<" in line


def test_why_names_who_wrote_what_it_quotes(records, writers):
    seen = read_table(records.run_dir, "impressions")
    row = seen[seen["post"].isin(list(writers))].iloc[-1]
    post, agent = int(row["post"]), str(int(row["agent"]))
    lines = list(report_lines(why(records.run_dir, agent, int(row["round"]))))
    reads = next(line for line in lines if "it reads" in line and f"(post {post} by" in line)
    assert 'it reads a reply without words to "' in reads
    assert f'" by {writers[post]} (post {post} by ' in reads
