"""The names that scripts rely on, and that importing them costs only what is used."""

import subprocess
import sys

import pytest

import prism_mesa

TOP = (
    "AgentState Transition StateTransition Statechart NEEDS_ORACLE F Reasoner OllamaChatClient SocialAgent SocialModel "
    "Config run agents_in_state state_distribution run_economy draw_run draw_economy draw_chart draw_survey "
    "draw_distilled"
).split()
IN_REASONER = ["build_reasoner_prompt", "parse_reasoner_response", "STATE_DESCRIPTIONS"]


def as_ruff_sorts(name):
    """Constants, then classes, then functions."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, name


def test_the_public_list_is_sorted_and_names_each_thing_once():
    names = prism_mesa.__all__
    assert names == sorted(set(names), key=as_ruff_sorts)
    assert len(names) <= 40


def test_every_public_name_can_be_imported_and_is_offered_to_completion():
    missing = [name for name in prism_mesa.__all__ if getattr(prism_mesa, name, None) is None]
    assert missing == []
    assert set(dir(prism_mesa)) >= set(prism_mesa.__all__)


@pytest.mark.parametrize("name", TOP)
def test_a_name_that_scripts_rely_on_is_public(name):
    assert name in prism_mesa.__all__


@pytest.mark.parametrize("name", IN_REASONER)
def test_the_words_of_the_oracle_are_names_of_the_reasoner(name):
    import prism_mesa.reasoner

    assert name in prism_mesa.reasoner.__all__
    assert getattr(prism_mesa.reasoner, name) is not None


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'prism_mesa' has no attribute 'Statecharts'"):
        _ = prism_mesa.Statecharts


def test_a_star_import_brings_the_public_names():
    space = {}
    exec("from prism_mesa import *", space)
    assert set(prism_mesa.__all__) <= set(space)


@pytest.mark.parametrize("module", ["prism_mesa", "prism_mesa.cli.app"])
def test_the_command_line_loads_nothing_heavy_until_it_is_needed(module):
    heavy = ("mesa", "pandas", "matplotlib", "numpy", "pydantic", "rich.progress", "ollama", "networkx")
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_help_loads_nothing_heavy_either():
    code = (
        "import sys; from prism_mesa.cli import app as cli; sys.argv = ['prism', 'run', '--help']\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    print([m for m in ('mesa', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
