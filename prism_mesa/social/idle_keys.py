"""Which keys, and settings of interventions, were set and change nothing: in words (`without_effect` says when)."""

from copy import copy

import numpy as np

from prism_mesa.params import leaf_values, said_of
from prism_mesa.social.known import Known, known_of
from prism_mesa.social.params import SocialParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns
from prism_mesa.social.without_effect import TABLE
from prism_mesa.social.world.build import StartingWorld
from prism_mesa.without_effect import without_effect


def keys_without_effect(platform: Platform, world: StartingWorld, *, given: bool, chart_given: bool) -> tuple[str, ...]:
    """Return in words which keys were set and change nothing.

    Args:
        platform: The platform.
        world: What it was made from.
        given: Whether a reasoner was given for it in Python.
        chart_given: Whether a chart was.
    """
    said = said_of(platform.params)
    if platform.params.reasoner.kind == "auto":  # whoever is there decides, and the summary says who that was
        said.pop("reasoner.kind", None)
    known = known_of(platform, world, said, given=given, chart_given=chart_given)
    keys = list(said)
    for place in range(len(platform.params.interventions)):  # what counts from a later round on does count
        later = _known_under(platform, world, place, given=given, chart_given=chart_given)
        idle = [entry for entry in TABLE if entry.when(later)]
        keys = [key for key in keys if any(entry.holds(key) for entry in idle)]
    return (*without_effect(TABLE, known, keys), *_never_told(known))


def _at(platform: Platform, place: int) -> SocialParams:
    """Return the parameters for all agents in the round of an intervention, without it and what comes after it."""
    params = platform.params
    earlier = params.model_copy(update={"interventions": params.interventions[:place]})
    return earlier.at(params.interventions[place].at)


def _never_told(known: Known) -> list[str]:
    """Return in words which attributes are to be told in prompts, and are not."""
    if known.given or known.writes or (known.asks and known.persona != "archetype"):
        return []
    why = "archetypes are asked, who speak for many agents" if known.asks else "no LLM is asked"
    told = {name: own.of for name, own in known.p.attributes.items() if own.told}
    return [f"attributes.{name}.told: no effect: {why}" for name, of in told.items() if of == "agent" or not known.asks]


def interventions_without_effect(
    platform: Platform, world: StartingWorld, *, given: bool, chart_given: bool
) -> tuple[str, ...]:
    """Return in words which settings of interventions change nothing; arguments are as above."""
    told, all_of, n = [], platform.params.interventions, len(platform.population)
    everybody, as_given = AgentColumns(platform, np.arange(n)), {"given": given, "chart_given": chart_given}
    under = [_known_under(platform, world, place, **as_given) for place in range(len(all_of))]
    idle = [[entry for entry in TABLE if entry.when(known)] for known in under]
    for place, (one, known) in enumerate(zip(all_of, under, strict=True)):
        before, after = leaf_values(_at(platform, place)), leaf_values(known.p)
        where = f"interventions: {place} (from round {one.at} on)"
        if one.agents is not None and not platform.feeds.named(place, everybody, n).any():
            told.append(f"{where}: no effect: of no agent it is true that {one.agents}, as the run begins")
        of_some = {key for other in all_of[:place] if other.agents and other.holds_in(one.at) for key in other.set}
        same = [key for key in one.set if before[key] == after[key] and key not in of_some]
        told += [f"{where}: {key}: no effect: it is so before" for key in same]
        after_it = zip(all_of[place + 1 :], idle[place + 1 :], strict=True)
        later = [own for other, own in after_it if one.holds_in(other.at)]  # what counts with them does count
        changed = [key for key in one.set if before[key] != after[key]]
        changed = [key for key in changed if all(any(entry.holds(key) for entry in own) for own in later)]
        told += [f"{where}: {said}" for said in without_effect(TABLE, known, changed)]
    return tuple(told)


def _known_under(platform: Platform, world: StartingWorld, place: int, *, given: bool, chart_given: bool) -> Known:
    """Return what is known for those whom an intervention names, as it begins."""
    shown = copy(platform)
    shown.params = _at(platform, place).changed_by(platform.params.interventions[place].set)
    return known_of(shown, world, said_of(shown.params), given=given, chart_given=chart_given)
