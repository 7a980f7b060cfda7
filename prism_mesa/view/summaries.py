"""Summaries of runs, nations and surveys as text, from the numbers in the summary alone."""

from collections.abc import Iterator
from pathlib import PurePath
from shlex import quote
from typing import Any

from prism_mesa.domain import NOTHING_HAPPENED
from prism_mesa.errors import counted, in_command, printable

_SOURCES = {
    "llm": "answered by the LLM",
    "cache": "by an answer that the LLM had given before",
    "fallback": "by fallback",
    "budget": "beyond a limit",
    "rule": "by rule",
    "distilled": "by the distilled model",
}


def run_lines(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a platform's summary as (what, text)."""
    yield "run", f"{summary['run_dir']} ({summary['status']}, seed {summary['seed']})"
    yield "platform", ", ".join(counted(summary[f"{what}s"], what) for what in ("agent", "follow", "round"))
    yield "network", _network(summary)
    if changes := summary.get("network_changes"):
        yield "follows", _network_changes(changes)
    if churn := summary.get("churn"):
        yield "churn", _churn(churn)
    if opinions := summary.get("opinions"):
        yield "opinions", _opinions(opinions)
    yield from _activity_lines(summary)
    yield from _decision_lines(summary["decisions"])
    yield from _writing_lines(summary)
    yield from _fallback_lines(summary["decisions"])
    yield from _note_lines(summary)
    rounds = f"{summary['round_cpu_s'] * 1000:.0f} CPU ms a round at the median"
    yield "time", f"{_time(summary)}{rounds}, {summary['records_cpu_s']:.1f} CPU s of records"
    if summary["peak_memory_mb"] is not None:
        yield "memory", f"{summary['peak_memory_mb']:,.0f} MB at its peak"
    yield "pictures", _pictures(summary)
    if summary["status"] == "done" and summary["rounds"]:
        yield "next", _commands(summary, summary["most_followers"]["id"], "app")


def _activity_lines(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield lines on agents' activity, on cascades, and on inequality."""
    engagement, trees = summary["engagement"], summary["cascades"]
    of_replies = f" ({summary['reshares_of_replies']:,} of replies)" if "reshares_of_replies" in summary else ""
    yield "states", ", ".join(f"{state} {share:.1%}" for state, share in summary["state_shares"].items())
    numbers = {"post": engagement["posts"], "impression": summary["impressions"], "like": engagement["likes"]}
    numbers |= {"reply": engagement["replies"], "reshare": engagement["reshares"]}
    yield "engagement", ", ".join(counted(n, what) for what, n in numbers.items()) + of_replies
    if trees["n"]:
        size = f"mean size {trees['mean_size']:.2f}, largest {trees['max_size']}, deepest {trees['max_depth']}"
        yield "cascades", f"{counted(trees['n'], 'post')}, {trees['share_never_reshared']:.0%} never reshared, {size}"
    if "attention" in summary:
        yield "inequality", _inequality(summary["activity"], summary["attention"])


def _decision_lines(decisions: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield lines on open choices: how many, who answered them, and at what cost."""
    rates, llm = decisions["rates"], decisions["llm"]
    by = decisions["by_source"]
    answered = ", ".join(f"{by[source]:,} {text}" for source, text in _SOURCES.items() if source in by)
    choices = f"{counted(decisions['open'], 'open choice')} ({rates['open']:.2f} an agent-round)"
    yield "decisions", f"{choices}: {answered or 'nobody was asked'}"
    if left := decisions["by_source"].get("budget", 0):
        beyond = f"{counted(left, 'open choice')} ({rates['budget']:.0%}) beyond a limit of the reasoner"
        yield "limits", f"{beyond}, answered by reasoner.fallback={decisions['fallback']}"
    if llm["calls"]:
        yield (
            "asked",
            f"{llm['calls']:,} calls, {llm['tokens']:,} tokens: {llm['calls_per_1000_agent_rounds']:.1f} calls and "
            f"{llm['tokens_per_1000_agent_rounds']:,.0f} tokens per 1,000 agent-rounds (asking every agent in every "
            "round: 1,000 calls)",
        )
    for llm, n in decisions.get("llms", {}).items():
        spent = f"{n['calls']:,} calls, {n['tokens']:,} tokens"
        left = f", {n['budget']:,} beyond a limit" if n["budget"] else ""
        yield "by LLM", f"{llm}: {spent}; {n['answered']:,} answered, {counted(n['fallbacks'], 'fallback')}{left}"


def _writing_lines(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield lines on who wrote the texts, unless templates did as configured."""
    if writing := summary["writing"]:
        reasons = ", ".join(f"{n} {why}" for why, n in writing["reasons"].items())
        spent = f"{writing['calls']:,} calls, {writing['tokens']:,} tokens"
        failed = f"{writing['failed']:,} did not come{f' (calls that failed: {reasons})' if reasons else ''}"
        left = f"{writing['budget']:,} were beyond a limit"
        yield "written", f"{writing['written']:,} texts by {writing['by']} ({spent}); {failed}, {left}"
    elif summary.get("content") == "llm":
        yield "written", "by templates: no LLM was there to write"


def _fallback_lines(decisions: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield lines on who decided, and on failures."""
    fallbacks = decisions["by_source"].get("fallback", 0)
    reasons = ", ".join(f"{n} {why}" for why, n in decisions["fallback_reasons"].items())
    yield "decided by", decisions["decided_by"] + (f" ({decisions['note']})" if decisions["note"] else "")
    yield "fallbacks", f"{fallbacks:,}" + (f" ({reasons})" if reasons else "")


def _note_lines(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield lines on guards that raised errors, on input files, and on recorded agents."""
    for fault, n in summary["guard_errors"].items():
        yield "guard error", f"{n:,} times: {fault}"
    for note in summary["notes"]:
        yield "note" if note.startswith(NOTHING_HAPPENED) else "input", note
    sampled = {table: of for table, of in summary["recorded"].items() if of["share"] < 1}
    if sampled:
        text = ", ".join(f"{table} of {of['agents']:,} agents" for table, of in sampled.items())
        yield "recorded", f"{text}, drawn once for the run ({', '.join(f'records.{t}=1' for t in sampled)}: of all)"


def _inequality(activity: dict[str, float], attention: dict[str, float]) -> str:
    """Return the inequality of actions and impressions: Gini coefficients, and the share of the top tenth."""
    shares = [("activity", activity), ("attention", attention)]
    each = [f"{name}: Gini {of['gini']:.2f}, the top 10 % have {of['top_10_share']:.0%}" for name, of in shares]
    return f"{'; '.join(each)} (attention: impressions of what an agent wrote)"


def _time(summary: dict[str, Any]) -> str:
    """Return the duration of the run, and of the whole command if it is known."""
    run = {name: summary.get(f"run_{name}", summary[name]) for name in ("cpu_s", "wall_s")}
    text = f"{run['cpu_s']:.1f} CPU s ({run['wall_s']:.1f} wall s), "
    if "run_cpu_s" not in summary:
        return text
    whole = f"{summary['cpu_s']:.1f} CPU s ({summary['wall_s']:.1f} wall s) in all, with imports and compiling"
    return f"{whole}; the run {text}"


def _pictures(summary: dict[str, Any]) -> str:
    return ", ".join(PurePath(path).name for path in summary.get("pictures", ())) or "none"


def _opinions(opinions: dict[str, Any]) -> str:
    """Return the distribution of stances before and after a run, and what changed them."""
    spreads = [
        f"mean {spread['mean']:.3f}, sd {spread['sd']:.3f}, bimodality "
        + ("undefined" if spread["bimodality"] is None else f"{spread['bimodality']:.2f}")
        for spread in (opinions["before"], opinions["after"])
        if spread["mean"] is not None
    ]
    moved = f"{opinions['drawn_on']:,} posts drew a reader on, {opinions['pushed_away']:,} pushed one away"
    return f"{opinions['of']}: {' -> '.join(spreads) or 'nobody was there'}; {moved}"


def _network_changes(changes: dict[str, Any]) -> str:
    """Return the numbers of follows before and after, and agents' decisions about each other."""
    before, after = changes["follows_before"], changes["follows_after"]
    counts = {event: n for event, n in changes["events"].items() if n or event not in ("unmute", "unblock")}
    events = ", ".join(f"{n:,} {_EVENTS[event][n != 1]}" for event, n in counts.items())
    return f"{before:,} at the beginning, {after:,} at the end: {events}"


def _churn(churn: dict[str, Any]) -> str:
    """Return the numbers of agents that were present, joined and left."""
    events = churn["events"]
    return (
        f"{churn['there_first']:,} agents there at the beginning, {churn['there_last']:,} at the end, "
        f"{churn['there_mean']:,.0f} on average, of {churn['rows']:,}: {events['join']:,} joined, {events['leave']:,} "
        f"left, {events['back']:,} came back, {events['removed']:,} removed; {churn['never_joined']:,} never joined"
    )


_EVENTS = {
    "follow": ("follow", "follows"),
    "unfollow": ("unfollow", "unfollows"),
    "mute": ("mute", "mutes"),
    "block": ("block", "blocks"),
    "report": ("report", "reports"),
    "unmute": ("mute taken back", "mutes taken back"),
    "unblock": ("block taken back", "blocks taken back"),
}


def _network(summary: dict[str, Any]) -> str:
    """Return the most followed and most following agents, which reveal a graph that is read the wrong way round."""
    most, eager, direction = summary["most_followers"], summary["follows_most"], summary["direction"]
    read = f" (network.direction={direction})" if direction else ""
    return (
        f"most followers: {printable(most['id'][:40])} with {most['followers']:,}; "
        f"follows most: {printable(eager['id'][:40])} with {eager['follows']:,}{read}"
    )


_READ_BY = {"answer": "given in numbers", "parser": "read by the parser", "llm": "by the LLM", "rule": "set by a rule"}


def economy_lines(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of the summary of nations as (what, text)."""
    decisions = summary["decisions"]
    yield "run", f"{summary['run_dir']} ({summary['status']}, seed {summary['seed']})"
    span = f", {' to '.join(summary['quarters'])}" if summary["quarters"] else ""
    yield "nations", f"{', '.join(summary['nations'])}: {summary['rounds']} quarters{span}"
    yield "decided by", summary["decided_by"] + (f" ({summary['note']})" if summary["note"] else "")
    read = ", ".join(f"{n:,} {_READ_BY[who]}" for who, n in decisions["read_by"].items())
    yield (
        "decisions",
        f"{decisions['made']:,} ({read or 'none'}): {decisions['accepted']:,} carried out, "
        f"{decisions['no_change']:,} without a change, {decisions['rejected']:,} rejected by the validator, "
        f"{decisions['not_understood']:,} not understood",
    )
    if decisions["llm"]["calls"]:
        yield "asked", f"{decisions['llm']['calls']:,} calls, {decisions['llm']['tokens']:,} tokens"
    for nation, of in summary["indicators"].items():
        yield (
            "nation",
            f"{nation}: growth {_mean(of['gdp_growth'])}, output gap {_mean(of['output_gap'])}, inflation "
            f"{_mean(of['inflation'])}, unemployment {_mean(of['unemployment'])}; at the end policy rate "
            f"{of['policy_rate']['last']:.2f} %, debt {of['debt']['last']:.0f} % of GDP",
        )
    if summary["loss"] is not None:
        others = summary["baseline_loss"]
        yield (
            "loss",
            f"{summary['loss']:.1f}; with Taylor's rule {others['taylor']:.1f}, without any policy "
            f"{others['nothing']:.1f} (inflation beyond target squared plus output gap squared, mean of nations and "
            "quarters)",
        )
    for note in summary["notes"]:
        yield "input", note
    yield "time", f"{_time(summary)}{summary['records_cpu_s']:.1f} CPU s of records"
    yield "pictures", _pictures(summary)
    if summary["rounds"]:
        yield "next", _commands(summary, summary["nations"][0], "replay")


def _commands(summary: dict[str, Any], agent: str, then: str) -> str:
    """Return two commands to try after a run."""
    run_dir, end = in_command(summary["run_dir"]), "-- " if agent.startswith("-") else ""
    return f"prism why {end}{run_dir} {quote(printable(agent))}; prism {then} {run_dir}"


def _mean(of: dict[str, float]) -> str:
    return f"{of['mean']:.1f} % (sd {of['sd']:.1f})"


def survey_lines(summary: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a survey's summary: respondents, a table for each closed question, and a few open answers."""
    failed = ", ".join(f"{n:,} {reason}" for reason, n in summary["failures"].items())
    yield f"survey      {summary['folder']} ({summary['status']})"
    when = f"before the run and after round {summary['at']}"
    yield f"asked       {summary['agents']:,} of {summary['of']:,} agents of {summary['run']}, {when}"
    yield f"answered by {summary['llm']}" + (f" ({summary['note']})" if summary["note"] else "")
    for note in summary["notes"]:
        yield f"note        {note}"
    yield f"answers     {summary['answers']:,}, {sum(summary['failures'].values()):,} did not come ({failed or 'none'})"
    for question in summary["questions"]:
        n = ", ".join(f"{number:,} {wave}" for wave, number in question["answered"].items())
        yield ""
        yield f"{question['id']}: {question['ask']} (answered: {n})"
        if question["options"]:
            rows = [row for row in summary["table"] if row["question"] == question["id"]]
            yield from _option_lines(question, rows)
        if question.get("asked_by") == "noise":
            yield "  in free words of an LLM that rambles: not to be believed; use a larger one"
        for answer in question.get("some", ()):
            yield f"  {answer['name']} (agent {answer['agent']}), before: {answer['before']}"
            yield f"  {'':<{len(answer['name'])}} {'':<{len(str(answer['agent'])) + 8}}  after:  {answer['after']}"


def _option_lines(question: dict[str, Any], rows: list[dict[str, Any]]) -> Iterator[str]:
    text = {(row["option"], row["wave"]): row for row in rows}
    width = min(max(map(len, question["options"])), 40)
    yield f"  {'':<{width}}" + "".join(f"  {wave:<20}" for wave in ("before", "after", "change")).rstrip()
    for option in question["options"]:
        cells = [_interval(text[option, wave], sign) for wave, sign in (("before", ""), ("after", ""), ("change", "+"))]
        yield f"  {option[:width]:<{width}}" + "".join(f"  {cell:<20}" for cell in cells).rstrip()
    if any(row["n"] and row["low"] is None for row in rows):
        yield "  no intervals: too few agents answered to tell how much others would differ"
    if question["asked_by"] == "association":
        yield "  by association with words: tells topics, not attitudes; means depend on how options are worded"
    letters = ", ".join(f"{letter} {share:.2f}" for letter, share in question["by_letter"].items())
    if letters:
        alike = f"without a preference: {1 / len(question['options']):.2f} each"
        yield f"  by letter, whatever it stood for: {letters} ({alike})"


def _interval(row: dict[str, Any], sign: str) -> str:
    if not row["n"]:
        return "no answers"
    if row["low"] is None:
        return f"{row['mean']:{sign}.3f}"
    return f"{row['mean']:{sign}.3f} [{row['low']:{sign}.3f}, {row['high']:{sign}.3f}]"
