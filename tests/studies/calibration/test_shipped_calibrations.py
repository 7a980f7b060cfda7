"""The calibrations that come with PRISM can be run."""

from pathlib import Path

import pytest

from prism_mesa.studies.calibration.plan import plan_calibration, read_calibration

FOLDER = Path(__file__).parents[3] / "configs" / "calibrations"


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_shipped_calibration_can_be_run_has_an_effect_and_holds_something_out(file):
    plan = plan_calibration(read_calibration(file), file.stem, str(file))
    assert plan.notes == ()
    assert plan.params.holdout
    assert plan.params.runs >= 2 * plan.first
