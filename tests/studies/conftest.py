"""Studies whose runs are made in this process, one after another."""

import sys
from concurrent.futures import Executor, Future
from contextlib import contextmanager

import pytest

from prism_mesa.studies import driver
from prism_mesa.studies.design.study_design import design_study
from prism_mesa.studies.engines.worker import carry_out
from prism_mesa.studies.params import study_params

SMALL = {"agents.n": 20, "rounds": 2, "network.mean_degree": 5}


class Inline(Executor):
    """Runs a job when it is handed in."""

    def submit(self, work, job):
        future = Future()
        try:
            future.set_result(work(job))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            future.set_exception(error)
        return future


@pytest.fixture
def jobs(monkeypatch):
    """Return the jobs that were run, in order; they are run here and now."""
    done = []

    @contextmanager
    def opened(kind, *, workers, scheduler=None):
        yield Inline()

    def run(job):
        done.append(job)
        return carry_out(job)

    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(driver, "open_engine", opened)
    monkeypatch.setattr(driver, "run_supervised", run)
    return done


@pytest.fixture
def designed(monkeypatch, tmp_path):
    """Return what makes a small study from its values."""

    def make(**values):
        given = {"question": "Does it?", "base": SMALL, "measures": ["reshares"], "seeds": 3, "keep": "measures"}
        return design_study(study_params({**given, **values}, "mine.yaml"), "mine", "mine.yaml")

    return make
