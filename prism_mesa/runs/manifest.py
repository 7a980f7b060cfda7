"""What a run's manifest says, checked once, when it is read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictInt, StrictStr

from prism_mesa.errors import ConfigError, DataError
from prism_mesa.params import Params, shown, validated
from prism_mesa.runs.checkpoints.file import last_round
from prism_mesa.runs.process.state import RunState, state_of
from prism_mesa.runs.run_files import LEDGER, MANIFEST, manifest_and_origin
from prism_mesa.runs.trust import Origin


class _Facts(Params):
    """Facts of a manifest; it may hold others, which nobody reads."""

    model_config = ConfigDict(extra="ignore")


def llm_facts(kind: str, llm: Any, client: Any, **own: Any) -> dict[str, Any]:
    """Return what a manifest says of who is asked, and how, which `RecordedLLM` reads.

    Args:
        kind: How it is reached.
        llm: What has a name, a digest and options of decoding.
        client: What knows its server.
        own: What else is to be said.
    """
    said = {"kind": kind, "name": llm.name, "digest": str(getattr(llm, "digest", ""))}
    said |= {"server": str(getattr(client, "server_version", "")), "decoding": dict(llm.decoding)}
    return said | own


class RecordedLLM(_Facts):
    """The LLM of a run and its options; with several, `llms` has an entry for each and the rest is the first's."""

    llms: list[dict[str, Any]] = Field(default_factory=list)
    kind: StrictStr | None = None
    name: StrictStr = ""
    digest: StrictStr = ""
    decoding: dict[str, Any] = Field(default_factory=dict)
    answer: Literal["choice", "probabilities", "decision"] | None = None
    persona: Literal["individual", "archetype"] | None = None
    prompt_style: StrictStr | None = None


class KeptModel(_Facts):
    """The distilled model that a run used: the SHA-256 of its file."""

    digest: StrictStr


class Ending(_Facts):
    """How far a run came: rounds or quarters that were completed; None where it does not say."""

    rounds: StrictInt | None = Field(None, ge=0, le=10**9)


class Manifest(_Facts):
    """What readers of a run's folder use of its manifest.

    Attributes:
        system: `social` or `economy`.
        config: The configuration, not checked: see `runs.recorded`, which alone makes one of it.
        note: Why whoever decides does, although another one was wished for; else empty.
        of_own_code: Whether it failed in code of a user's own.
        code: What stands for the code that made it (`identity.code_version`); empty if it does not say.
        says_who_was_asked: Whether it has everything that is needed to repeat it.
    """

    system: StrictStr = "social"
    status: StrictStr = "not known"
    error: StrictStr = ""
    of_own_code: StrictBool = False
    seed: StrictInt | None = None
    config: dict[StrictStr, Any] | None = None
    decided_by: StrictStr = "nobody"
    note: StrictStr = ""
    code: StrictStr = ""
    llm: RecordedLLM | None = None
    distilled: KeptModel | None = None
    made_in_python: list[StrictBool] = Field(default_factory=list)
    working_directory: StrictStr = "."
    summary: Ending = Field(default_factory=Ending)

    @property
    def says_who_was_asked(self) -> bool:
        """Whether it says of whom open choices were asked, or that nobody was."""
        known = {"llm", "config", "status"} <= self.model_fields_set
        return known and (self.llm is None or self.llm.kind is not None)

    @property
    def of_nations(self) -> bool:
        """Whether it is of a run of nations, not of a platform."""
        return self.system == "economy"

    @property
    def planned(self) -> int | None:
        """Rounds or quarters that the run was to have, or None if it does not say."""
        rounds = (self.config or {}).get("rounds")
        return rounds if isinstance(rounds, int) and not isinstance(rounds, bool) else None


OBJECTS: Final = ("chart", "prepare", "reasoner")
"""What a run of a platform can be given in Python, in the order of `made_in_python`."""


@dataclass(frozen=True)
class RecordedRun:
    """A run's folder, its manifest, and whose it is."""

    folder: Path
    manifest: Manifest
    whose: Origin

    @property
    def started_in(self) -> Path:
        """Where it was started: files that its configuration names are looked for from there.

        Of a run that was packed as an archive it is the run's own folder, or one above it.
        """
        return self.folder / self.manifest.working_directory

    @property
    def state(self) -> RunState:
        """How it stands now."""
        return state_of(self.folder, self.manifest.status, self.manifest.planned)

    @property
    def is_over(self) -> bool:
        """Whether it has come to its end, so that there is nothing to go on with.

        One that failed has if all its rounds are there and it has no checkpoint, as a run keeps that could not write
        its last tables.
        """
        done, status = self.manifest.summary.rounds, self.state.status
        all_done = done is not None and done == self.manifest.planned
        return status == "done" or (status == "failed" and all_done and last_round(self.folder) is None)

    def is_left(self, *, from_start: bool = False) -> bool:
        """Return whether `resume` leaves it as it is; if it failed in the end, it can still be started again."""
        return self.is_over and not (from_start and self.manifest.status == "failed")

    @property
    def way_on(self) -> str:
        """What can be done with it if it has not come to its end, as the end of an error; else an empty string."""
        python = any(self.manifest.made_in_python)
        own = self.state.status == "failed" and self.manifest.of_own_code
        way_on = self.state.way_on(self.folder, from_python=python, from_start=self.is_over, of_own_code=own)
        return f"; {way_on}" if way_on else ""

    @property
    def again_in_python(self) -> str:
        """That a run cannot be repeated from its folder, and how it is repeated with what it was given in Python."""
        given = [name for name, was in zip(OBJECTS, self.manifest.made_in_python, strict=False) if was]
        told = f"was given {' and '.join(given)} in Python, which no folder holds: run it again in Python, with "
        told += f"run(config, {', '.join(f'{name}=...' for name in given)})"
        ledger = self.folder / LEDGER
        if self.manifest.llm is None or not ledger.is_file():
            return told
        if "reasoner" in given:
            store = f"store=AnswerStore('replay', Ledger({str(ledger)!r}))"
            return f"{told}, where Reasoner(..., {store}) takes the answers from its ledger"
        return f"{told} and, in config, reasoner.ledger=replay and reasoner.ledger_path={ledger}"


def read_run(run_dir: str | Path) -> RecordedRun:
    """Return a run's folder with its manifest, read and checked.

    Raises:
        DataError: If there is no run but nothing, a survey or an interview, or its manifest cannot be read, or holds
            what none does.
    """
    folder = Path(run_dir)
    values, whose = manifest_and_origin(folder)
    try:
        manifest = validated(Manifest, values, str(folder / MANIFEST))
    except ConfigError as error:
        raise DataError(f"{error} (it is damaged, or another version wrote it)") from None
    if manifest.system not in ("social", "economy"):
        told = shown(manifest.system)
        raise DataError(f"{folder}: is no run but {told}: a run is of a platform or of nations")
    done, planned = manifest.summary.rounds, manifest.planned
    if done is not None and planned is not None and done > planned:
        raise DataError(f"{folder / MANIFEST}: summary.rounds: {done} of {planned} rounds cannot have been completed")
    return RecordedRun(folder, manifest, whose)
