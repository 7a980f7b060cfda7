"""Runs whose tables are damaged are named when they are opened, not while the page is drawn."""

import pytest

from prism_mesa.errors import DataError
from prism_mesa.runs.config import make_config
from prism_mesa.runs.social import run
from prism_mesa.view.playback.recorded import open_recorded

QUICK = {"agents": {"n": 30, "activity": 0.8, "post_rate": 0.5}, "network": {"mean_degree": 6}, "rounds": 2}


@pytest.mark.slow
def test_a_table_that_was_cut_off_is_named_when_the_run_is_opened(tmp_path):
    folder = run(make_config({**QUICK, "reasoner": {"kind": "rule"}}), out=tmp_path).run_dir
    assert open_recorded(folder).rounds == 2
    for table in ("agents", "posts", "transitions", "impressions", "engagements"):
        file = folder / f"{table}.parquet"
        whole = file.read_bytes()
        file.write_bytes(whole[:200])
        with pytest.raises(DataError, match=rf"{table}\.parquet: cannot be read"):
            open_recorded(folder)
        file.write_bytes(whole)


def test_a_finished_run_without_a_table_is_not_said_to_go_on(tmp_path):
    folder = run(make_config({**QUICK, "reasoner": {"kind": "rule"}}), out=tmp_path).run_dir
    (folder / "posts.parquet").unlink()
    with pytest.raises(DataError, match=r"no table 'posts' there: it was removed \(status done\)"):
        open_recorded(folder)
