import errno
import json
import os

import pytest
import yaml
from worlds import plain

from prism_mesa.errors import DataError, RunError
from prism_mesa.runs.config import load_config
from prism_mesa.studies.design.study_design import design_study
from prism_mesa.studies.engines.job import Outcome
from prism_mesa.studies.folder import WHOLE, Shard, open_folder, replacing, write_study_files
from prism_mesa.studies.journal import Journal
from prism_mesa.studies.params import study_params


def design_of(question="Does it?", **values):
    base = plain({"agents.n": 20, "rounds": 2, "network.mean_degree": 5})
    given = {"question": question, "base": base, "measures": ["reshares"], **values}
    return design_study(study_params(given, "mine.yaml"), "mine", "mine.yaml")


def made(design, out):
    folder = open_folder(design, out)
    folder.path.mkdir(parents=True, exist_ok=True)
    write_study_files(design, folder, "")
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
    with pytest.raises(DataError, match="is not the folder of a study"):
        open_folder(design_of(), tmp_path)
    (tmp_path / "mine" / "study.json").write_text("[")
    with pytest.raises(DataError, match="cannot be read"):
        open_folder(design_of(), tmp_path)
    (tmp_path / "mine" / "study.json").write_text(json.dumps({"kind": "run"}))
    with pytest.raises(DataError, match="is not the manifest of a study"):
        open_folder(design_of(), tmp_path)
    (tmp_path / "other").write_text("a file")
    with pytest.raises(DataError, match="is not a folder"):
        open_folder(design_of(name="other"), tmp_path)


def test_the_folder_of_another_study_is_left_alone(tmp_path):
    first = design_of()
    folder = made(first, tmp_path)
    put(first, folder, next(first.runs()))
    with pytest.raises(DataError, match=r"is the folder of another study \('Does it\?'\)"):
        open_folder(design_of("Does something else?", set={"rounds": 3}), tmp_path)
    reword = design_of("Does it, after all?")
    assert open_folder(reword, tmp_path) == folder


def test_two_drivers_never_share_a_folder_but_shards_do(tmp_path):
    folder = made(design_of(), tmp_path)
    with folder.locked(WHOLE):
        for shard in (WHOLE, Shard(1, 2)):
            with pytest.raises(DataError, match="another process is running this study"), folder.locked(shard):
                pass
    with folder.locked(Shard(1, 2)), folder.locked(Shard(2, 2)):
        for shard in (WHOLE, Shard(1, 2)):
            with pytest.raises(DataError, match="another process is running this study"), folder.locked(shard):
                pass
    with folder.locked(WHOLE):
        pass


def test_shards_have_whole_seeds_of_all_conditions_where_there_are_enough():
    design = design_of(vary={"agents.band": [0.02, 0.1]}, seeds=4)
    dealt = [[k for k in range(1, 3) if Shard(k, 2).contains(place, design)] for place in range(8)]
    assert dealt == [[1], [1], [2], [2], [1], [1], [2], [2]]
    few = design_of(vary={"agents.band": [0.02, 0.1]}, seeds=2)
    assert [[k for k in range(1, 4) if Shard(k, 3).contains(place, few)] for place in range(4)] == [[1], [2], [3], [1]]
    many = design_of(vary={"agents.band": [0.02, 0.1, 0.2]}, seeds=2)
    assert [[k for k in range(1, 4) if Shard(k, 3).contains(place, many)] for place in range(6)] == [
        *([1], [2], [3]),
        *([2], [3], [1]),
    ]


@pytest.mark.parametrize("name", [".lock", "journal-2-of-3.sqlite", "answers.sqlite", "study.json", "runs"])
@pytest.mark.parametrize("target", ["thesis", "nowhere"])
def test_a_folder_in_which_a_study_would_write_through_a_link_is_refused(tmp_path, name, target):
    design = design_of()
    folder = made(design, tmp_path)
    (tmp_path / "thesis").write_text("years of work")
    (folder.path / name).unlink(missing_ok=True)
    (folder.path / name).symlink_to(tmp_path / target)
    with pytest.raises(DataError, match=f"{name} is a link"):
        open_folder(design, tmp_path)
    with pytest.raises(DataError, match=f"{name} is a link"), folder.locked(WHOLE):
        pass
    assert (tmp_path / "thesis").read_text() == "years of work"
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_is_a_link_is_refused(tmp_path):
    design = design_of()
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "mine").symlink_to(made(design, tmp_path).path)
    with pytest.raises(DataError, match="mine is a link"):
        open_folder(design, tmp_path / "linked")


def test_a_file_that_could_not_be_written_leaves_the_one_before_and_nothing_else(tmp_path):
    file = tmp_path / "study.json"
    file.write_text("before")
    with pytest.raises(RunError, match=r"study\.json cannot be written: No space left on device"), replacing(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]
