"""Attributes of your own, computed from existing columns."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

type Columns = Mapping[str, npt.NDArray[Any]]

ALARMS = ("BREAKING", "they hide", "never told", "before it is deleted")


def labelled(columns: Columns) -> npt.NDArray[np.bool_]:
    """Return which posts have a label: those that are untrue and checked."""
    return np.asarray(columns["untrue"] & columns["checked"])


def alarming(columns: Columns) -> npt.NDArray[np.bool_]:
    """Return which posts contain an alarming phrase."""
    return np.array([any(alarm in text for alarm in ALARMS) for text in columns["text"]], np.bool_)


def heed(columns: Columns) -> npt.NDArray[np.float64]:
    """Return how far agents heed labels, 0..1: more if they are conscientious and agreeable (an assumption)."""
    return np.asarray((columns["conscientiousness"] + columns["agreeableness"] - 2.0) / 8.0)
