"""The names that scripts rely on, and that importing them costs only what is used."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import prism_mesa

ROOT = Path(__file__).parents[1]

TOP = (
    "run run_economy resume branch compare list_runs open_run replay why measure Study Calibration validate survey "
    "distill Interview RunResult "
    "Config load_config SocialModel SocialAgent EconomyModel AgentState Transition StateTransition Statechart "
    "NEEDS_ORACLE ANY F agents_in_state state_distribution draw_chart cascades Reasoner RuleReasoner "
    "OllamaChatClient Ledger PrismError PrismWarning "
    "StatechartAgent tick_all state_counts state_shares after rate probability when exponential"
).split()
IN_REASONER = ["build_reasoner_prompt", "parse_reasoner_response", "STATE_DESCRIPTIONS"]


def test_the_public_names_are_these_48():
    assert sorted(prism_mesa.__all__) == sorted(TOP)
    assert len(TOP) == 48


def test_each_public_name_is_written_once():
    stub = Path(prism_mesa.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^from \.[\w.]+ import (\w+) as \1$", stub, re.MULTILINE)) == sorted(TOP)
    assert not set(TOP) & set(re.findall(r"\w+", Path(prism_mesa.__file__).read_text(encoding="utf-8")))


def test_every_public_name_can_be_imported_and_is_offered_to_completion():
    missing = [name for name in prism_mesa.__all__ if getattr(prism_mesa, name, None) is None]
    assert missing == []
    assert set(dir(prism_mesa)) >= set(prism_mesa.__all__)


@pytest.mark.parametrize("name", IN_REASONER)
def test_the_words_of_the_oracle_are_names_of_the_reasoner(name):
    import prism_mesa.reasoner

    assert name in prism_mesa.reasoner.__all__
    assert getattr(prism_mesa.reasoner, name) is not None


def test_type_checkers_see_the_public_names_of_an_installed_package():
    assert Path(prism_mesa.__file__).with_name("py.typed").is_file()


@pytest.mark.parametrize("module", ["prism_mesa", "prism_mesa.cli.app"])
def test_the_command_line_loads_nothing_heavy_until_it_is_needed(module):
    heavy = ("mesa", "pandas", "matplotlib", "numpy", "pydantic", "rich.progress", "ollama", "networkx")
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_name_that_a_package_offers_is_there():
    offered = 0
    for file in sorted((ROOT / "prism_mesa").rglob("__init__.py")):
        if "__all__" in file.read_text(encoding="utf-8"):
            package = import_module(".".join(file.relative_to(ROOT).parent.parts))
            assert [name for name in package.__all__ if not hasattr(package, name)] == []
            offered += len(package.__all__)
    assert offered > 100
