"""Bursts, hours of the day, and durations."""

from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Mask, Rows

HOURS: Final = 24


def burstiness(times: npt.ArrayLike, persons: npt.ArrayLike, min_events: int = 10) -> Floats:
    """Return each person's burstiness ``(s - m) / (s + m)``; m and s are mean and sd of the times between events.

    It is -1 for a clock, 0 for a Poisson process and 1 for a single burst (Goh and Barabasi 2008,
    doi:10.1209/0295-5075/81/48002). `persons` are integers from 0. Persons with fewer than `min_events` (at least 2)
    events, or with all events at the same time, are left out.
    """
    person, time = np.asarray(persons, np.int64), np.asarray(times, np.float64)
    order = np.lexsort((time, person))
    person, time = person[order], time[order]
    gaps, is_same_person = np.diff(time), person[1:] == person[:-1]
    gaps, gap_person = gaps[is_same_person], person[1:][is_same_person]
    n_people = int(person.max()) + 1 if len(person) else 0
    n = np.bincount(gap_person, minlength=n_people)
    is_included = (n + 1 >= max(2, min_events)) & (n > 0)
    mean = np.bincount(gap_person, gaps, n_people) / np.maximum(n, 1)
    squared_deviations = np.bincount(gap_person, (gaps - mean[gap_person]) ** 2, n_people)
    spread = np.sqrt(squared_deviations / np.maximum(n, 1))
    is_included &= spread + mean > 0
    return np.asarray((spread - mean)[is_included] / (spread + mean)[is_included])


def hour_profile(hours: npt.ArrayLike) -> Floats:
    """Return the share of events in each hour of the day, shape (24,); zeros without events."""
    counts = np.bincount(np.asarray(hours, np.int64), minlength=HOURS)
    return counts / max(1, int(counts.sum()))


def correlation(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return Pearson's correlation; NaN if `first` or `second` does not vary."""
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > 1e-15 * len(a) else float("nan")


def shift_between(profile: npt.ArrayLike, reference: npt.ArrayLike) -> int:
    """Return the shift, 0 to 23 hours, at which a reference correlates best with a profile.

    >>> shift_between(np.roll(np.arange(24), 5), np.arange(24))
    5
    """
    fits = [correlation(profile, np.roll(np.asarray(reference), hours)) for hours in range(HOURS)]
    return int(np.nanargmax(fits)) if np.isfinite(fits).any() else 0


def survival(lengths: Rows, ended: Mask) -> tuple[Rows, Floats]:
    """Return the sorted lengths of ended events, and the share of all events that are longer than each.

    Kaplan and Meier 1958, doi:10.1080/01621459.1958.10501452; events that have not ended are censored.

    >>> [column.tolist() for column in survival(np.array([1, 2, 2, 5]), np.array([True, True, False, False]))]
    [[1, 2], [0.75, 0.5]]
    """
    durations, n_ended = np.unique(lengths[ended], return_counts=True)
    n_at_risk = len(lengths) - np.searchsorted(np.sort(lengths), durations)
    return durations, np.cumprod(1 - n_ended / n_at_risk)
