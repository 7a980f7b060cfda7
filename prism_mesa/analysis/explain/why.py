"""Explain an agent's actions by repeating the rounds of its run."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from prism_mesa.analysis.explain.trace import AgentRound, TracedAgent
from prism_mesa.errors import DataError
from prism_mesa.llm import AskedRow, Ledger
from prism_mesa.runs.archive import find_row
from prism_mesa.runs.config import Config
from prism_mesa.runs.manifest import RecordedRun, read_run
from prism_mesa.runs.recorded import recorded_config
from prism_mesa.runs.rounds import without_repeated_warnings
from prism_mesa.runs.run_files import LEDGER
from prism_mesa.social.model import SocialModel


@dataclass(frozen=True)
class Explanation:
    """An agent of a run, its rounds, and the round to report in full.

    Attributes:
        requests: For each answer, by its key in the ledger, the requests that used it, in order.
        post: A post to report on instead of a round.
    """

    agent: TracedAgent
    decided_by: str
    rounds: list[AgentRound]
    reported_round: AgentRound | None
    requests: Mapping[str, Sequence[AskedRow]] = field(default_factory=dict)
    post: int | None = None


@without_repeated_warnings()
def why(
    run_dir: str | Path,
    agent: str,
    round_: int | None = None,
    *,
    post: int | None = None,
    on_round: Callable[[int], None] | None = None,
    trust: bool = False,
) -> Explanation:
    """Explain a round of an agent, or a post in its feeds; arguments and errors as in `api.runs.why`."""
    run_dir = Path(run_dir)
    config = recorded_config(run_dir, trust=trust)
    recorded = read_run(run_dir)
    last_round = _last_round(recorded, config)
    if round_ is not None and not 0 <= round_ <= last_round:
        raise DataError(f"{run_dir} has no round {round_} (rounds: 0 .. {last_round})")
    with closing(SocialModel(config)) as model:
        population = model.population
        traced_agent = TracedAgent(model, find_row(agent, population.ids, population.names, run_dir), post)
        for round_index in range((last_round if round_ is None else round_) + 1):
            model.step()
            traced_agent.note_round()
            if on_round is not None:
                on_round(round_index + 1)
        n_posts = model.posts.n_visible(model.round)
        if post is not None and not 0 <= post < n_posts:
            raise DataError(f"{run_dir} has no post {post} by round {model.round} (posts: 0 .. {n_posts - 1})")
    rounds = traced_agent.rounds
    reported = next((r for r in rounds if r.round == round_), None) if round_ is not None else _most_eventful(rounds)
    stored = [move.stored_answer for move in (reported.moves if reported is not None else ())]
    keys = {answer.key for answer in stored if answer is not None}
    requests = _read_requests(recorded.folder, keys)
    return Explanation(traced_agent, recorded.manifest.decided_by, rounds, reported, requests, post)


def _read_requests(run_dir: Path, keys: Collection[str]) -> dict[str, list[AskedRow]]:
    rows: dict[str, list[AskedRow]] = {key: [] for key in keys}
    if keys:
        with Ledger(run_dir / LEDGER, read_only=True) as ledger:
            for row in ledger.asked():
                if row.key in rows:
                    rows[row.key].append(row)
    return rows


def _last_round(run: RecordedRun, config: Config) -> int:
    """Return the last complete round; if the run was killed and its manifest lacks the round, the ledger has it."""
    rounds = run.manifest.summary.rounds
    if rounds is None and run.manifest.llm is not None:
        with Ledger(run.folder / LEDGER, read_only=True) as ledger:
            rounds = max((row.round for row in ledger.asked()), default=0)
    if rounds == 0:
        raise DataError(f"{run.folder}: no round was completed (status {run.state}){run.advice}")
    return min(rounds or config.rounds, config.rounds) - 1


def _most_eventful(rounds: list[AgentRound]) -> AgentRound | None:
    def weight(r: AgentRound) -> tuple[int, int, int, bool, int]:
        open_choices = sum(move.answer is not None for move in r.moves)
        n_actions = len(r.engagements) + len(r.tool_activities)
        n_certain = min(len(r.engagements), open_choices) + len(r.tool_activities)
        return n_certain, n_actions, n_actions + open_choices + len(r.new_posts), r.came_online, r.round

    return max(rounds, key=weight, default=None)
