import json

import pytest
import yaml

from prism_mesa.errors import DataError
from prism_mesa.runs.config import load_config
from prism_mesa.studies.design.study_design import design_study
from prism_mesa.studies.engines.job import Outcome
from prism_mesa.studies.folder import WHOLE, Shard, make_study_folder, open_folder
from prism_mesa.studies.journal import Journal
from prism_mesa.studies.params import study_params


def design_of(question="Does it?", **values):
    base = {"agents.n": 20, "rounds": 2, "network.mean_degree": 5}
    given = {"question": question, "base": base, "measures": ["reshares"], **values}
    return design_study(study_params(given, "mine.yaml"), "mine", "mine.yaml")


def made(design, out):
    folder = open_folder(design, out)
    make_study_folder(folder)
    folder.describe(design, "")
    return folder


def put(design, folder, run):
    journal = Journal(folder.journal(WHOLE))
    journal.put(Outcome(run.run, "done"), {}, run.condition.identity, "", kept=False)
    journal.close()


def test_a_study_is_at_home_in_the_folder_of_its_name(tmp_path):
    design = design_of()
    folder = made(design, tmp_path)
    assert folder.path == tmp_path / "mine"
    assert open_folder(design, tmp_path) == folder
    assert yaml.safe_load((folder.path / "study.yaml").read_text())["question"] == "Does it?"
    assert load_config(folder.base) == design.base


def test_passwords_are_not_written_into_the_folder(tmp_path):
    design = design_of(set={"reasoner.kind": "rule", "reasoner.host": "http://me:secret@llm.example"})
    folder = made(design, tmp_path)
    assert not any("secret" in file.read_text() for file in folder.path.iterdir())


def test_the_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="holds no study but something else"):
        open_folder(design_of(), tmp_path)
    (tmp_path / "mine" / "study.json").write_text("[")
    with pytest.raises(DataError, match="cannot be read"):
        open_folder(design_of(), tmp_path)
    (tmp_path / "mine" / "study.json").write_text(json.dumps({"kind": "run"}))
    with pytest.raises(DataError, match="is not what a study writes"):
        open_folder(design_of(), tmp_path)
    (tmp_path / "other").write_text("a file")
    with pytest.raises(DataError, match="is no folder"):
        open_folder(design_of(name="other"), tmp_path)


def test_the_folder_of_another_study_is_left_alone(tmp_path):
    first = design_of()
    folder = made(first, tmp_path)
    put(first, folder, next(first.runs()))
    with pytest.raises(DataError, match=r"is the folder of another study \('Does it\?'\)"):
        open_folder(design_of("Does something else?", set={"rounds": 3}), tmp_path)
    reworded = design_of("Does it, after all?")
    assert open_folder(reworded, tmp_path) == folder


def test_two_drivers_never_share_a_folder_but_shards_do(tmp_path):
    folder = made(design_of(), tmp_path)
    with folder.locked(WHOLE):
        for shard in (WHOLE, Shard(1, 2)):
            with pytest.raises(DataError, match="another process runs this study now"), folder.locked(shard):
                pass
    with folder.locked(Shard(1, 2)), folder.locked(Shard(2, 2)):
        for shard in (WHOLE, Shard(1, 2)):
            with pytest.raises(DataError, match="another process runs this study now"), folder.locked(shard):
                pass
    with folder.locked(WHOLE):
        pass


def test_shards_have_every_run_once():
    assert [[k for k in range(1, 4) if Shard(k, 3).has(place)] for place in range(4)] == [[1], [2], [3], [1]]
