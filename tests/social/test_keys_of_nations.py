"""Keys without effect on nations."""

import warnings

import pytest
from key_worlds import NOBODY, another, without_embedded
from minds import THINKS, quiet
from worlds import Memory

from prism_mesa.economy.model import EconomyModel
from prism_mesa.errors import PrismWarning
from prism_mesa.llm import LLMClient, LLMParams
from prism_mesa.params import list_leaves, nest_keys
from prism_mesa.runs.config import EconomyConfig


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path, monkeypatch):
    """Some keys name a file that is made where it is missing."""
    monkeypatch.chdir(tmp_path)


# -- nations ----------------------------------------------------------------------------------------------


def advises(prompt):
    if prompt.endswith(THINKS):
        return quiet(prompt)
    return '{"action": "Cut interest rates by 25 basis points", "reasoning": "Growth.", "confidence": 0.5}'


NATIONS = {
    "the default": lambda made: ({}, {}),
    "chance": lambda made: ({"economy.policy": "random"}, {}),
    "one nation": lambda made: ({"economy.nations": ["Sweden"]}, {}),
    "an LLM in Python": lambda made: ({"economy.policy": "llm"}, {}),
    "no tools": lambda made: (
        {
            "economy.policy": "llm",
            "economy.deliberate": True,
            "deliberation.max_tool_calls": 0,
            "reasoner.attempts": 1,
        },
        {},
    ),
    "the rule in its place": lambda made: ({"economy.policy": "llm", "reasoner.kind": "rule"}, {}),
    "no LLM there": lambda made: ({"economy.policy": "llm", "reasoner.host": NOBODY}, {}),
}


ADVISORS = {
    "no tools": lambda: advises,
    "an LLM in Python": lambda: advises,
    "a client in Python": lambda: LLMClient(advises, LLMParams(kind="python", timeout_s=60.0)),
}


def quarters(values, world):
    llm = ADVISORS.get(world)
    memory = Memory()
    model = EconomyModel(EconomyConfig.model_validate(nest_keys(values)), llm=llm and llm(), recorder=memory)
    for _ in range(6):
        model.step()
    model.close()
    return memory.tables, without_effect(model)


def without_effect(model):
    """Return the notes on keys without effect; others say who decides."""
    return [note for note in model.notes if ": no effect: " in note]


def notes_of(values, world):
    llm = ADVISORS.get(world)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        model = EconomyModel(EconomyConfig.model_validate(nest_keys(values)), llm=llm and llm())
    model.close()
    return without_effect(model)


@pytest.mark.slow
@pytest.mark.parametrize("world", NATIONS)
def test_so_it_is_with_nations(world, made, monkeypatch):
    base, more = NATIONS[world](made)
    defaults = dict(list_leaves(EconomyConfig))
    with without_embedded(monkeypatch, world):
        plain, notes = quarters(base, world)
        assert notes == []
        changed = {}
        for key in defaults.keys() - base.keys():
            value = another(key, defaults[key])
            if value is not None:
                changed |= {key: value} if notes_of(base | {key: value}, world) else {}
        changed |= more
        with pytest.warns(PrismWarning, match=r"^EconomyModel: .*: no effect: "):
            other, notes = quarters(base | changed, world)
    said = {key for note in notes for key in note.partition(": no effect: ")[0].split(", ")}
    assert said == set(changed)
    assert other == plain
