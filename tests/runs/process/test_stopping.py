"""What Ctrl-C and SIGTERM do to a run: once, again, and once more."""

import json
import os
import re
import signal
import subprocess
import threading
import time

import pytest
from forked import PYTHON
from small_runs import small, table_bytes

from prism_mesa import SocialModel, run
from prism_mesa.api.runs import resume
from prism_mesa.runs.process import stopping
from prism_mesa.runs.process.stopping import handle_signals
from prism_mesa.runs.run_files import read_manifest, read_table

SIGNALS = (signal.SIGINT, signal.SIGTERM)
IN_ROUND = "prism: the run is stopped after this round, and can go on later (press again to end at once)\n"
AGAIN = "prism: the last tables are being written (press again to end at once, without them)\n"


@pytest.fixture(autouse=True)
def usual():
    """Both signals do what they do in a program of its own, also in one that ignores them."""
    before = [
        signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.signal(signal.SIGTERM, signal.SIG_DFL),
    ]
    yield
    for number, does in zip(SIGNALS, before, strict=True):
        signal.signal(number, does)


@pytest.fixture
def impatient(monkeypatch):
    """Signals that come at once after another are several."""
    monkeypatch.setattr(stopping, "_REPEAT_S", 0.0)


def send(number=signal.SIGTERM):
    os.kill(os.getpid(), number)


def only(folder):
    [found] = folder.iterdir()
    return found


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_run_and_keeps_what_was_recorded(number, tmp_path):
    said = "round 1: interrupted" + (" by SIGTERM" if number == signal.SIGTERM else "")
    with pytest.raises(KeyboardInterrupt, match=rf"{said} \(what was recorded is kept there; 'prism") as stop:
        run(small(), out=tmp_path, pictures=False, on_round=lambda done: send(number) if done == 2 else None)
    folder = only(tmp_path)
    assert (read_manifest(folder)["status"], read_manifest(folder)["error"]) == ("interrupted", said)
    assert read_table(folder, "rounds")["round"].tolist() == [0, 1]
    assert stop.value.result.summary["rounds"] == 2
    whole = run(small(rounds=2), out=tmp_path / "whole", pictures=False).run_dir
    assert table_bytes(folder) == table_bytes(whole)


def test_signals_that_somebody_else_has_given_a_meaning_keep_it(tmp_path):
    came = []
    for number in SIGNALS:
        signal.signal(number, lambda number, frame: came.append(number))
    done = run(small(), out=tmp_path, pictures=False, on_round=lambda done: [send(number) for number in SIGNALS])
    assert done.status == "done"
    assert sorted(came) == sorted(SIGNALS * 3)


def test_a_run_in_another_thread_leaves_the_signals_alone(tmp_path):
    seen = []

    def look(done):
        seen.append([signal.getsignal(number) for number in SIGNALS])

    thread = threading.Thread(
        target=run, args=(small(rounds=1),), kwargs={"out": tmp_path, "on_round": look, "pictures": False}
    )
    thread.start()
    thread.join()
    assert seen == [[signal.default_int_handler, signal.SIG_DFL]]
    assert read_manifest(only(tmp_path))["status"] == "done"


# -- while the last tables are written ---------------------------------------------------------------


@pytest.fixture
def writing(monkeypatch):
    """Have something happen each time that the last tables are begun to be written."""
    from prism_mesa.runs import social

    does, written = [], social.cascades

    def cascades(*arguments):
        for act in does:
            act()
        return written(*arguments)

    monkeypatch.setattr(social, "cascades", cascades)
    return does


def test_one_that_comes_while_the_last_tables_are_written_leaves_a_whole_run(tmp_path, writing, capsys):
    writing.append(send)
    with pytest.raises(KeyboardInterrupt, match=r"interrupted while its last tables were written \(the complete run"):
        run(small(), out=tmp_path / "a", pictures=False)
    writing.clear()
    assert capsys.readouterr().err == AGAIN
    assert read_manifest(only(tmp_path / "a"))["status"] == "done"
    whole = run(small(), out=tmp_path / "b", pictures=False).run_dir
    assert table_bytes(only(tmp_path / "a")) == table_bytes(whole)


@pytest.mark.usefixtures("impatient")
def test_a_second_one_in_the_round_ends_at_once_and_the_folder_can_be_read(tmp_path, capsys):
    def twice(done):
        if done == 2:
            send()
            send()

    said = r"round 1: interrupted by SIGTERM; ended at once, without its last tables \(what was recorded is kept"
    with pytest.raises(KeyboardInterrupt, match=said) as stop:
        run(small(checkpoint_every=1), out=tmp_path, pictures=False, on_round=twice)
    folder = only(tmp_path)
    assert capsys.readouterr().err == IN_ROUND
    assert stop.value.result is None
    assert read_manifest(folder)["status"] == "interrupted"
    assert not list(folder.glob("*.parquet"))
    whole = run(small(), out=tmp_path / "whole", pictures=False).run_dir
    assert table_bytes(resume(folder, pictures=False)) == table_bytes(whole)


def test_one_in_a_round_lets_it_come_to_its_end_and_be_kept(tmp_path, monkeypatch, capsys):
    steps, own = [], SocialModel.step

    def step(model):
        if model.round == 0:
            send(signal.SIGINT)
        own(model)
        steps.append(model.round)

    monkeypatch.setattr(SocialModel, "step", step)
    with pytest.raises(KeyboardInterrupt, match=r"'prism resume .*' continues it from round 2\)$"):
        run(small(), out=tmp_path, pictures=False)
    assert steps == [0, 1]
    assert capsys.readouterr().err == IN_ROUND
    assert read_table(only(tmp_path), "rounds")["round"].tolist() == [0, 1]


def test_one_in_the_last_round_comes_too_late(tmp_path):
    with pytest.raises(KeyboardInterrupt, match=r"interrupted while its last tables were written \(the complete run"):
        run(small(), out=tmp_path, pictures=False, on_round=lambda done: send() if done == 3 else None)
    assert read_manifest(only(tmp_path))["status"] == "done"


def test_several_that_come_at_once_are_one(capsys):
    with handle_signals():
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
        for number in SIGNALS * 3:  # a terminal, and whoever started this, pass on the same
            send(number)
    assert capsys.readouterr().err == ""


# -- processes ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_sigterm_from_a_scheduler_ends_prism_run_as_ctrl_c_does(tmp_path):
    command = [*PYTHON, "-m", "prism_mesa.cli", "run", "rounds=1000000", "agents.n=30", "network.mean_degree=5"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*command, "reasoner.kind=rule", "--json", "--out", str(tmp_path)], **pipes)
    try:
        until = time.monotonic() + 60
        while not list(tmp_path.glob("*/rounds.parquet")) and time.monotonic() < until:
            time.sleep(0.02)
        process.terminate()
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    folder, said = only(tmp_path), json.loads(out)
    assert (process.returncode, said["status"]) == (130, "interrupted")
    last = err.splitlines()[-1]
    assert re.fullmatch(
        rf"prism: {folder}: round \d+: interrupted by SIGTERM \(what was recorded .*'prism resume .*' \D+\d+\)",
        last,
    )
    assert "Traceback" not in err
    assert said["rounds"] >= 49
    rounds = read_table(folder, "rounds")["round"].tolist()
    assert rounds == list(range(len(rounds)))
    assert len(rounds) - said["rounds"] in (0, 1)  # the one it was in, if collected
    assert sorted(os.path.basename(path) for path in said["pictures"]) == [
        "cascades.png",
        "engagement.png",
        "states.png",
    ]
