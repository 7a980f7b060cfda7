"""Summaries of runs, nations and surveys as text, and of runs as HTML for notebooks."""

from collections.abc import Iterator
from pathlib import PurePath
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from prism_mesa.domain import NOTHING_HAPPENED, SHARE, color_order, states_in
from prism_mesa.errors import format_count, printable, quote_path
from prism_mesa.markup import bar_html, card_html, facts_html, note_html

if TYPE_CHECKING:
    from prism_mesa.runs.lifecycle import RunResult

_SOURCES: Final = {
    "llm": "answered by the LLM",
    "cache": "by an answer that the LLM had given before",
    "fallback": "by fallback",
    "budget": "beyond a limit",
    "rule": "by rule",
    "distilled": "by the distilled model",
}
_NETWORK_EVENTS: Final = {
    "follow": ("follow", "follows"),
    "unfollow": ("unfollow", "unfollows"),
    "mute": ("mute", "mutes"),
    "block": ("block", "blocks"),
    "report": ("report", "reports"),
    "unmute": ("mute taken back", "mutes taken back"),
    "unblock": ("block taken back", "blocks taken back"),
}
_READER_TEXTS: Final = {
    "answer": "given in numbers",
    "parser": "read by the parser",
    "llm": "by the LLM",
    "rule": "set by a rule",
}


def run_lines(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of the summary of a platform as (name, text)."""
    yield "run", f"{summary['run_dir']} ({summary['status']}, seed {summary['seed']})"
    yield "platform", ", ".join(format_count(summary[f"{name}s"], name) for name in ("agent", "follow", "round"))
    yield from _network_lines(summary)
    yield from _activity_lines(summary)
    yield from _decision_lines(summary["decisions"])
    if writing := summary["writing"]:
        reasons = ", ".join(f"{n} {reason}" for reason, n in writing["reasons"].items())
        failed = f"{writing['failed']:,} failed{f' (calls that failed: {reasons})' if reasons else ''}"
        texts = f"{writing['written']:,} texts by {writing['by']} ({_cost_text(writing)})"
        yield "written", f"{texts}; {failed}, {writing['budget']:,} were beyond a limit"
    elif summary.get("content") == "llm":
        yield "written", "by templates: there was no LLM to write"
    yield "decided by", _decider(summary["decisions"])
    reasons = ", ".join(f"{n} {reason}" for reason, n in summary["decisions"]["fallback_reasons"].items())
    fallbacks = f"{summary['decisions']['by_source'].get('fallback', 0):,}"
    yield "fallbacks", fallbacks + (f" ({reasons})" if reasons else "")
    yield from _note_lines(summary)
    rounds = f"{summary['round_cpu_s'] * 1000:.0f} CPU ms a round at the median"
    yield "time", f"{_duration_text(summary)}{rounds}, {summary['records_cpu_s']:.1f} CPU s of records"
    if summary["peak_memory_mb"] is not None:
        yield "memory", f"{summary['peak_memory_mb']:,.0f} MB at its peak"
    yield "pictures", _pictures(summary)
    if summary["status"] == "done" and summary["rounds"]:
        yield "next", _commands(summary, summary["most_followers"]["id"], "app")


def _network_lines(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield lines about the network, and about changes of follows, agents and opinions.

    The agents with most followers and followees show whether edges were read in the wrong direction.
    """
    most_followed, most_following, direction = summary["most_followers"], summary["follows_most"], summary["direction"]
    yield (
        "network",
        f"most followers: {printable(most_followed['id'][:40])} with {most_followed['followers']:,}; follows most: "
        f"{printable(most_following['id'][:40])} with {most_following['follows']:,}"
        f"{f' (network.direction={direction})' if direction else ''}",
    )
    if changes := summary.get("network_changes"):
        counts = {event: n for event, n in changes["events"].items() if n or event not in ("unmute", "unblock")}
        events = ", ".join(f"{n:,} {_NETWORK_EVENTS[event][n != 1]}" for event, n in counts.items())
        before, after = changes["follows_before"], changes["follows_after"]
        yield "follows", f"{before:,} at the beginning, {after:,} at the end: {events}"
    if churn := summary.get("churn"):
        events = churn["events"]
        yield (
            "churn",
            f"{churn['present_first']:,} agents at the beginning, {churn['present_last']:,} at the end, "
            f"{churn['present_mean']:,.0f} on average, of {churn['rows']:,}: {events['join']:,} joined, "
            f"{events['leave']:,} left, {events['back']:,} came back, {events['removed']:,} removed; "
            f"{churn['never_joined']:,} never joined",
        )
    if opinions := summary.get("opinions"):
        spreads = [
            f"mean {spread['mean']:.3f}, sd {spread['sd']:.3f}, bimodality "
            + ("undefined" if spread["bimodality"] is None else f"{spread['bimodality']:.2f}")
            for spread in (opinions["before"], opinions["after"])
            if spread["mean"] is not None
        ]
        post_effects = f"{opinions['drawn_on']:,} posts attracted a reader, {opinions['pushed_away']:,} repelled one"
        yield "opinions", f"{opinions['of']}: {' -> '.join(spreads) or 'no agents'}; {post_effects}"


def _activity_lines(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    engagement, cascades = summary["engagement"], summary["cascades"]
    yield "states", ", ".join(f"{state} {share:.1%}" for state, share in summary["state_shares"].items())
    numbers = {"post": engagement["posts"], "impression": summary["impressions"], "like": engagement["likes"]}
    numbers |= {"reply": engagement["replies"], "reshare": engagement["reshares"]}
    reply_note = f" ({summary['reshares_of_replies']:,} of replies)" if "reshares_of_replies" in summary else ""
    yield "engagement", ", ".join(format_count(n, name) for name, n in numbers.items()) + reply_note
    if cascades["n"]:
        size = f"mean size {cascades['mean_size']:.2f}, largest {cascades['max_size']}, deepest {cascades['max_depth']}"
        posts = f"{format_count(cascades['n'], 'post')}, {cascades['share_never_reshared']:.0%} never reshared"
        yield "cascades", f"{posts}, {size}"
    if "attention" in summary:
        shares = ((name, summary[name]) for name in ("activity", "attention"))
        texts = [f"{name}: Gini {n['gini']:.2f}, the top 10 % have {n['top_10_share']:.0%}" for name, n in shares]
        yield "inequality", f"{'; '.join(texts)} (attention: impressions of an agent's posts)"


def _decision_lines(decisions: dict[str, Any]) -> Iterator[tuple[str, str]]:
    rates, total, by_source = decisions["rates"], decisions["llm"], decisions["by_source"]
    sources = ", ".join(f"{by_source[source]:,} {text}" for source, text in _SOURCES.items() if source in by_source)
    choices = f"{format_count(decisions['open'], 'open choice')} ({rates['open']:.2f} an agent-round)"
    yield "decisions", f"{choices}: {sources or 'nobody was asked'}"
    if n_over_limit := by_source.get("budget", 0):
        beyond = f"{format_count(n_over_limit, 'open choice')} ({rates['budget']:.0%}) beyond a limit of the reasoner"
        yield "limits", f"{beyond}, answered by reasoner.fallback={decisions['fallback']}"
    if total["calls"]:
        yield (
            "asked",
            f"{_cost_text(total)}: {total['calls_per_1000_agent_rounds']:.1f} calls and "
            f"{total['tokens_per_1000_agent_rounds']:,.0f} tokens per 1,000 agent-rounds (asking every agent in every "
            "round: 1,000 calls)",
        )
    for llm, n in decisions.get("llms", {}).items():
        over_limit = f", {n['budget']:,} beyond a limit" if n["budget"] else ""
        answers = f"{n['answered']:,} answered, {format_count(n['fallbacks'], 'fallback')}{over_limit}"
        yield "by LLM", f"{llm}: {_cost_text(n)}; {answers}"


def _cost_text(counts: dict[str, Any]) -> str:
    return f"{counts['calls']:,} calls, {counts['tokens']:,} tokens"


def _decider(summary: dict[str, Any]) -> str:
    return f"{summary['decided_by']}{f' ({summary["note"]})' if summary['note'] else ''}"


def _note_lines(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for fault, n in summary["guard_errors"].items():
        yield "guard error", f"{n:,} times: {fault}"
    for note in summary["notes"]:
        yield "note" if note.startswith(NOTHING_HAPPENED) else "input", note
    sampled = {table: counts["agents"] for table, counts in summary["recorded"].items() if counts["share"] < 1}
    if sampled:
        tables = ", ".join(f"{table} of {agents:,} agents" for table, agents in sampled.items())
        keys = ", ".join(f"records.{table}=1" for table in sampled)
        yield "recorded", f"{tables}, drawn once for the run ({keys}: of all)"


def _duration_text(summary: dict[str, Any]) -> str:
    """Return the duration of the run, and of the whole command if it is known."""
    cpu, wall = (summary.get(f"run_{name}", summary[name]) for name in ("cpu_s", "wall_s"))
    run = f"{cpu:.1f} CPU s ({wall:.1f} wall s), "
    if "run_cpu_s" not in summary:
        return run
    total = f"{summary['cpu_s']:.1f} CPU s ({summary['wall_s']:.1f} wall s) in all"
    return f"{total}, with imports and compiling; the run {run}"


def _pictures(summary: dict[str, Any]) -> str:
    return ", ".join(PurePath(path).name for path in summary.get("pictures", ())) or "none"


def _commands(summary: dict[str, Any], agent: str, viewer: str) -> str:
    run_dir, separator = quote_path(summary["run_dir"]), "-- " if agent.startswith("-") else ""
    return f"prism why {separator}{run_dir} {quote(printable(agent))}; prism {viewer} {run_dir}"


def economy_lines(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of the summary of nations as (name, text)."""
    decisions = summary["decisions"]
    yield "run", f"{summary['run_dir']} ({summary['status']}, seed {summary['seed']})"
    span = f", {' to '.join(summary['quarters'])}" if summary["quarters"] else ""
    yield "nations", f"{', '.join(summary['nations'])}: {summary['rounds']} quarters{span}"
    yield "decided by", _decider(summary)
    readers = ", ".join(f"{n:,} {_READER_TEXTS[reader]}" for reader, n in decisions["read_by"].items())
    yield (
        "decisions",
        f"{decisions['made']:,} ({readers or 'none'}): {decisions['accepted']:,} carried out, "
        f"{decisions['no_change']:,} without a change, {decisions['rejected']:,} rejected by the validator, "
        f"{decisions['not_understood']:,} not understood",
    )
    if decisions["llm"]["calls"]:
        yield "asked", _cost_text(decisions["llm"])
    for nation, values in summary["indicators"].items():
        names = ("gdp_growth", "output_gap", "inflation", "unemployment")
        spreads = ((name.removeprefix("gdp_").replace("_", " "), values[name]) for name in names)
        means = ", ".join(f"{label} {spread['mean']:.1f} % (sd {spread['sd']:.1f})" for label, spread in spreads)
        end_values = f"policy rate {values['policy_rate']['last']:.2f} %, debt {values['debt']['last']:.0f} % of GDP"
        yield "nation", f"{nation}: {means}; at the end {end_values}"
    if summary["loss"] is not None:
        baselines = summary["baseline_loss"]
        yield (
            "loss",
            f"{summary['loss']:.1f}; with Taylor's rule {baselines['taylor']:.1f}, without any policy "
            f"{baselines['nothing']:.1f} (inflation beyond target squared plus output gap squared, mean of nations and "
            "quarters)",
        )
    for note in summary["notes"]:
        yield "input", note
    yield "time", f"{_duration_text(summary)}{summary['records_cpu_s']:.1f} CPU s of records"
    yield "pictures", _pictures(summary)
    if summary["rounds"]:
        yield "next", _commands(summary, summary["nations"][0], "replay")


def survey_lines(summary: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a survey's summary: respondents, a table for each closed question, and some open answers."""
    failures = ", ".join(f"{n:,} {reason}" for reason, n in summary["failures"].items())
    yield f"survey      {summary['folder']} ({summary['status']})"
    waves = f"before the run and after round {summary['at']}"
    yield f"asked       {summary['agents']:,} of {summary['of']:,} agents of {summary['run']}, {waves}"
    yield f"answered by {summary['llm']}" + (f" ({summary['note']})" if summary["note"] else "")
    for note in summary["notes"]:
        yield f"note        {note}"
    yield f"answers     {summary['answers']:,}, {sum(summary['failures'].values()):,} failed ({failures or 'none'})"
    for question in summary["questions"]:
        n = ", ".join(f"{number:,} {wave}" for wave, number in question["answered"].items())
        yield ""
        yield f"{question['id']}: {question['ask']} (answered: {n})"
        if question["options"]:
            yield from _option_lines(question, summary["table"])
        if question.get("asked_by") == "noise":
            yield "  in the free words of an LLM that rambles: do not rely on them; use a larger LLM"
        for answer in question.get("some", ()):
            respondent = f"  {answer['name']} (agent {answer['agent']}),"
            yield f"{respondent} before: {answer['before']}"
            yield f"{' ' * len(respondent)} after:  {answer['after']}"


def _option_lines(question: dict[str, Any], table: list[dict[str, Any]]) -> Iterator[str]:
    rows = {(row["option"], row["wave"]): row for row in table if row["question"] == question["id"]}
    width = min(max(map(len, question["options"])), 40)
    waves = {"before": "", "after": "", "change": "+"}
    yield f"  {'':<{width}}" + "".join(f"  {wave:<20}" for wave in waves).rstrip()
    for option in question["options"]:
        cells = [_format_estimate(rows[option, wave], sign) for wave, sign in waves.items()]
        yield f"  {option[:width]:<{width}}" + "".join(f"  {cell:<20}" for cell in cells).rstrip()
    if any(row["n"] and row["low"] is None for row in rows.values()):
        yield "  no intervals: too few agents answered to estimate the spread"
    if question["asked_by"] == "association":
        yield "  by association with words: shows topics, not attitudes; means depend on the wording of options"
    letters = ", ".join(f"{letter} {share:.2f}" for letter, share in question["by_letter"].items())
    if letters:
        expected = f"without a preference: {1 / len(question['options']):.2f} each"
        yield f"  by letter, whatever its option: {letters} ({expected})"


def _format_estimate(row: dict[str, Any], sign: str) -> str:
    if not row["n"]:
        return "no answers"
    mean = f"{row['mean']:{sign}.3f}"
    return mean if row["low"] is None else f"{mean} [{row['low']:{sign}.3f}, {row['high']:{sign}.3f}]"


_OMITTED: Final = frozenset(("run", "states", "network", "time", "memory", "pictures", "next"))
"""Lines of the summary that a card omits or shows in another form."""


def run_html(result: "RunResult") -> str:
    """Return a run as HTML: its status, seed, states as a bar, summary and folder."""
    summary, remark = result.summary, result.state or result.status
    parts = [note_html(result.run_dir)]
    if summary:
        remark += f", seed {summary['seed']}"
        lines = economy_lines(summary) if "nations" in summary else run_lines(summary)
        parts.insert(0, facts_html((name, text) for name, text in lines if name not in _OMITTED))
    if shares := summary.get("state_shares"):
        states = color_order(states_in(SHARE + name for name in shares))
        bars = [(state.value, state.color, float(shares.get(state.value, 0.0))) for state in states]
        largest = sorted((share, name) for name, _, share in bars if share >= 0.005)[::-1]
        label = ", ".join(f"{name} {share:.1%}" for share, name in largest)
        parts.insert(0, bar_html(bars) + note_html(f"agent-ticks: {label}"))
    return card_html("run", result.run_dir.name, *parts, remark=remark)
