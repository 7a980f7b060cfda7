"""Find the arms of a study that differ only in the share of agents that an intervention treats."""

from collections.abc import Iterable, Mapping

from prism_mesa.runs.config import Config
from prism_mesa.social.params.interventions import InterventionParams
from prism_mesa.studies.measures.treatment import by_agent
from prism_mesa.studies.statistics.cells import Treatment


def find_treatments(measures: Iterable[str], config_by_arm: Mapping[str, Config]) -> tuple[Treatment, ...]:
    """Return the treatments of measures by agent for which some arms treat a share, one treats all, and one nobody.

    Interventions with `agents` are left out, because nobody is marked as eligible in the arm that treats nobody.
    """
    treatments = []
    for measure in measures:
        count, _, name = measure.partition("@")
        parts = {arm: _split(config, name) for arm, config in config_by_arm.items() if count in by_agent(count)}
        for whole, (share, act, rest) in parts.items():
            if act is None or share < 1 or act.agents is not None:
                continue
            shares = {arm: part[0] for arm, part in parts.items() if part[1] in (None, act) and part[2] == rest}
            some, none = ([arm for arm in shares if 0 < shares[arm] < 1], [arm for arm in shares if not shares[arm]])
            if some and none:
                rounds = f"{act.at}" if act.until is None else f"{act.at}-{act.until - 1}"
                treatments.append(Treatment(measure, f"{count}@{rounds}", tuple(some), whole, none[0]))
    return tuple(treatments)


def _split(config: Config, name: str) -> tuple[float, InterventionParams | None, Config]:
    """Return the share that an intervention treats, the intervention without it, and the rest of a configuration."""
    act = next((act for act in config.interventions if act.name == name), None)
    rest = config.model_copy(update={"interventions": tuple(other for other in config.interventions if other != act)})
    if act is None:
        return 0.0, None, rest
    return 1.0 if act.share is None else act.share, act.model_copy(update={"share": None, "assign": None}), rest
