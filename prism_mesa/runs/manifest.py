"""The manifest of a run, checked when it is read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictInt, StrictStr

from prism_mesa.errors import ConfigError, DataError, quote_path
from prism_mesa.params import Params, short_repr, validate_params
from prism_mesa.runs.checkpoints.file import last_round
from prism_mesa.runs.process.state import RunState, read_state
from prism_mesa.runs.run_files import MANIFEST, manifest_and_origin
from prism_mesa.runs.trust import Origin


class _Facts(Params):
    """Facts of a manifest; unknown facts are ignored."""

    model_config = ConfigDict(extra="ignore")


def llm_facts(kind: str, llm: Any, client: Any, **extra: Any) -> dict[str, Any]:
    """Return an LLM's entry in a manifest (see `RecordedLLM`).

    `llm` has a name, a digest and decoding options; `client` has the server's version; `extra` has further facts.
    """
    facts = {"kind": kind, "name": llm.name, "digest": str(getattr(llm, "digest", ""))}
    facts |= {"server": str(getattr(client, "server_version", "")), "decoding": dict(llm.decoding)}
    return facts | extra


class RecordedLLM(_Facts):
    """The LLM of a run and its options; `llms` lists several LLMs, and the other fields then describe the first."""

    llms: list[dict[str, Any]] = Field(default_factory=list)
    kind: StrictStr | None = None
    name: StrictStr = ""
    digest: StrictStr = ""
    decoding: dict[str, Any] = Field(default_factory=dict)
    answer: Literal["choice", "probabilities", "decision"] | None = None
    persona: Literal["individual", "archetype"] | None = None
    prompt_style: StrictStr | None = None


class RecordedModel(_Facts):
    """A run's distilled model, identified by the SHA-256 of its file."""

    digest: StrictStr


class Ending(_Facts):
    """The completed rounds or quarters of a run; None if the manifest does not say."""

    rounds: StrictInt | None = Field(None, ge=0, le=10**9)


class Manifest(_Facts):
    """The facts of a manifest that PRISM reads.

    Attributes:
        system: `social` or `economy`.
        config: The unchecked configuration (see `runs.recorded`).
        note: Why the configured reasoner was replaced; else empty.
        of_own_code: Whether the run failed in the user's code.
        code: The digest of PRISM's code (`identity.code_version`); empty if unknown.
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
    distilled: RecordedModel | None = None
    made_in_python: list[StrictBool] = Field(default_factory=list)
    working_directory: StrictStr = "."
    summary: Ending = Field(default_factory=Ending)

    @property
    def has_llm_facts(self) -> bool:
        """Whether the manifest names the LLM, or says that there was none."""
        has_keys = {"llm", "config", "status"} <= self.model_fields_set
        return has_keys and (self.llm is None or self.llm.kind is not None)

    @property
    def is_economy(self) -> bool:
        """Whether this is a run of nations."""
        return self.system == "economy"

    @property
    def planned_rounds(self) -> int | None:
        """The planned rounds or quarters; None if unknown."""
        rounds = (self.config or {}).get("rounds")
        return rounds if isinstance(rounds, int) and not isinstance(rounds, bool) else None


OBJECTS: Final = ("chart", "prepare", "reasoner")
"""Objects from Python that a platform's run can use, in the order of `made_in_python`."""


@dataclass(frozen=True)
class RecordedRun:
    """A run's folder, its manifest, and whether this user made it."""

    folder: Path
    manifest: Manifest
    origin: Origin

    @property
    def start_dir(self) -> Path:
        """The folder in which the run was started; paths in its configuration are relative to it."""
        return self.folder / self.manifest.working_directory

    @property
    def state(self) -> RunState:
        """The current state."""
        return read_state(self.folder, self.manifest.status, self.manifest.planned_rounds)

    @property
    def is_over(self) -> bool:
        """Whether the run is done, or failed after its last round without leaving a checkpoint."""
        n_done, status = self.manifest.summary.rounds, self.state.status
        all_done = n_done is not None and n_done == self.manifest.planned_rounds
        return status == "done" or (status == "failed" and all_done and last_round(self.folder) is None)

    def is_finished(self, *, from_start: bool = False) -> bool:
        """Return whether `resume` has nothing to do; with `from_start`, `resume` starts a failed run again."""
        return self.is_over and not (from_start and self.manifest.status == "failed")

    @property
    def advice(self) -> str:
        """Advice on an unfinished run, to append to an error; empty for other runs."""
        state = self.state
        if state.status == "running":
            return "; wait until it has ended"
        if state.status not in ("died", "interrupted", "failed"):
            return ""
        if state.status == "failed" and self.manifest.of_own_code:
            return "; correct that code, and start a new run, because a resumed run would fail there again"
        round_ = last_round(self.folder)
        effect = "starts it again, and asks nothing twice" if round_ is None else f"continues it from round {round_}"
        if any(self.manifest.made_in_python):
            call = "resume(..., from_start=True)" if self.is_over else "resume(...)"
            return f"; {call} in Python, with what it was given there, {effect}"
        return f"; 'prism resume {quote_path(self.folder)}{' --from-start' if self.is_over else ''}' {effect}"


def read_run(run_dir: str | Path) -> RecordedRun:
    """Return a run with its checked manifest; raises DataError if there is no run, or the manifest is damaged."""
    folder = Path(run_dir)
    values, origin = manifest_and_origin(folder)
    try:
        manifest = validate_params(Manifest, values, str(folder / MANIFEST))
    except ConfigError as error:
        raise DataError(f"{error} (it is damaged, or another version wrote it)") from None
    if manifest.system not in ("social", "economy"):
        raise DataError(f"{folder}: holds no run of a platform or of nations, but {short_repr(manifest.system)}")
    n_done, n_planned = manifest.summary.rounds, manifest.planned_rounds
    if n_done is not None and n_planned is not None and n_done > n_planned:
        raise DataError(
            f"{folder / MANIFEST}: summary.rounds: {n_done} of {n_planned} rounds cannot have been completed"
        )
    return RecordedRun(folder, manifest, origin)
