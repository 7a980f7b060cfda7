"""The agents that are objects with a class or fields of their own, in a snapshot of a model."""

from collections.abc import Mapping
from typing import Any, Final

import mesa

from prism_mesa.errors import NotRestorableError
from prism_mesa.snapshot import Plain, restore_object, state_of
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.mesa_agents import PopulationModel
from prism_mesa.social.snapshots.own_fields import is_simple, own_fields

_OF_ALL: Final = frozenset({"row", "model", "unique_id", "pos"})
"""Fields that every agent has."""


def agents_of(model: PopulationModel) -> dict[str, Plain]:
    """Return row, class, fields and state of each agent that is more than its row, in Mesa's order.

    Fields that are numbers, texts or None are held as they are; an agent with others has to say itself what its state
    is. What a script keeps anywhere else is not known.

    Raises:
        NotRestorableError: If an agent has other fields, but no `snapshot` and `restore`; or is none of the platform.
    """
    made = model.made_by_class
    found = [
        [_row_of(agent), _name_of(kind), *_state_of(agent)]
        for kind, agents in made.items()
        for agent in agents
        if kind is not SocialAgent or len(vars(agent)) > len(_OF_ALL)
    ]
    return {"classes": [_name_of(kind) for kind in made if kind is not SocialAgent], "agents": found}


def set_agents(model: PopulationModel, kept: Mapping[str, Plain]) -> None:
    """Bring back what `agents_of` returned; who came in a round is made of a class that another agent has.

    Raises:
        NotRestorableError: If an agent was of a class that none has here.
    """
    known: list[type[SocialAgent]] = [SocialAgent, *model.made_by_class]
    kinds = {_name_of(kind): kind for kind in known}
    model.have_moved([agent.row for agent in model.made_agents])
    agents = []
    for row, name, fields, state in kept["agents"]:
        agent = model.agent_of_class(row, _known(kinds, row, name))
        agent.__dict__.update(fields or {})
        if fields is None:
            restore_object(agent, state)
        agents.append(agent)
    model.put_in_order([kinds[name] for name in kept["classes"] if name in kinds], agents)


def _row_of(agent: mesa.Agent[Any]) -> int:
    if not isinstance(agent, SocialAgent):
        raise NotRestorableError(f"{type(agent).__name__}: is no SocialAgent: no snapshot holds it")
    return agent.row


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _state_of(agent: mesa.Agent[Any]) -> tuple[Plain, Plain]:
    """Return an agent's fields, or else what it says itself."""
    own = own_fields(agent, _OF_ALL)
    if hasattr(agent, "snapshot") or not all(map(is_simple, own.values())):
        return None, state_of(agent)
    return own, None


def _known(kinds: Mapping[str, type[SocialAgent]], row: int, name: str) -> type[SocialAgent]:
    if name not in kinds:
        raise NotRestorableError(f"agent {row} was a {name}, and no agent is one: make one before (prepare)")
    return kinds[name]
