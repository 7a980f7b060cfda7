from prism_mesa import Config
from prism_mesa.runs.identity import identify_config
from prism_mesa.studies.measures.catalogue import measure_version


def test_what_decides_results_makes_another_run():
    base = identify_config(Config())
    assert base.run_identity(1) == identify_config(Config()).run_identity(1) != base.run_identity(2)
    for other in (Config(agents={"n": 50}), Config(reasoner={"temperature": 0.5}), Config(rounds=3)):
        assert identify_config(other).run_identity(1) != base.run_identity(1)


def test_what_has_no_effect_on_results_makes_the_same_run():
    asked = {"max_concurrency": 5, "ledger": "cache", "ledger_path": "answers.sqlite"}
    same = Config(seed=7, threads=2, reasoner=asked)
    assert identify_config(same) == identify_config(Config())


def test_a_ledger_that_is_replayed_counts_by_what_it_holds(tmp_path):
    found = []
    for name in ("one", "other"):
        (tmp_path / name).write_text(name)
        found.append(identify_config(Config(reasoner={"ledger": "replay", "ledger_path": str(tmp_path / name)})))
    assert found[0].data != found[1].data


def test_files_count_by_what_they_hold(tmp_path):
    one, same, other = (tmp_path / name for name in ("one.csv", "same.csv", "other.csv"))
    one.write_text("text\nhello\n")
    same.write_text("text\nhello\n")
    other.write_text("text\ngoodbye\n")
    found = [identify_config(Config(posts={"file": str(file)})) for file in (one, same, other)]
    assert found[0] == found[1]
    assert (found[0].config, found[0].code) == (found[2].config, found[2].code)
    assert found[0].data != found[2].data != identify_config(Config()).data


def test_a_measure_of_ones_own_changes_with_its_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "counted_here.py"
    file.write_text("def one(run):\n    return 1\n")
    before = measure_version("counted_here:one")
    file.write_text("def one(run):\n    return 2\n")
    assert before != measure_version("counted_here:one") != ""
    package = tmp_path / "packed"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('nobody is to import it here')\n")
    (package / "one.py").write_text("from packed.two import likes\n")
    versions = set()
    for text in ("likes = 1\n", "likes = 2\n"):
        (package / "two.py").write_text(text)
        versions.add(measure_version("packed.one:likes"))
    assert len(versions) == 2
    assert measure_version("no_such_module_at_all:one") == ""
    assert measure_version("likes") == measure_version("reshares") != ""
