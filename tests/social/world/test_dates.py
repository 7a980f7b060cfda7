"""Dates of posts: a whole column is read in one order of day and month."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from user_files import written
from worlds import small

from prism_mesa.errors import DataError
from prism_mesa.social.world.corpus import load_corpus


def corpus_of(tmp_path, times, **how):
    rows = "".join(f'{number},"{time}"\n' for number, time in enumerate(times))
    return load_corpus(written(tmp_path / "p.csv", f"text,created_at\n{rows}"), **how)


@pytest.mark.parametrize(
    "times",
    [
        ["12.01.2017 17:18", "01.02.2017 11:12", "15.04.2017 02:40"],
        ["12/01/2017", "01/02/2017", "15/04/2017"],
        ["1-2-17 9:00", "3-2-17 9:00", "25-2-17 9:00"],
        ["12/01/2017, 10:15 PM", "01/02/2017, 9:00 AM", "15/04/2017, 9:00 AM"],
        ["17:18 12.01.2017", "11:12 01.02.2017", "02:40 15.04.2017"],
        ["12. 01. 2017", "01. 02. 2017", "15. 04. 2017"],
        ["12 01 2017 17:18", "01 02 2017 11:12", "15 04 2017 02:40"],
        ["Thu 12/01/2017 10:00 +02:00", "Wed 01/02/2017 09:00 +02:00", "Sat 15/04/2017 09:00 +02:00"],
    ],
)
def test_one_date_that_is_day_first_makes_the_column_day_first_and_that_is_noted(tmp_path, times):
    corpus = corpus_of(tmp_path, times)
    assert corpus.texts == ["0", "1", "2"]
    assert corpus.dropped == ()
    assert any("is read day-first" in note for note in corpus.notes)


def test_a_column_that_fits_both_orders_is_refused_with_an_example_until_a_key_says_which(tmp_path):
    times = ["12/01/2017", "01/02/2017"]
    with pytest.raises(DataError, match=r"'12/01/2017' \(line 2\).*2017-01-12.*2017-12-01.*posts\.dates"):
        corpus_of(tmp_path, times)
    assert corpus_of(tmp_path, times, dates="day_first").texts == ["0", "1"]
    month_first = corpus_of(tmp_path, times, dates="month_first")
    assert month_first.texts == ["1", "0"]
    assert any("month-first" in note for note in month_first.notes)
    posts = written(tmp_path / "p.csv", "text,author,created_at\nlater,1,12/01/2017\nfirst,2,01/02/2017\n")
    model = small(posts_file=posts, posts_dates="month_first")
    assert [model.posts.texts[text] for text in model.schedule.text_id] == ["first", "later"]


def test_a_column_that_fits_neither_order_is_refused_with_a_line_of_each_or_what_does_not_fit_is_dropped(tmp_path):
    times = ["01/02/2017", "25/02/2017", "02/25/2017"]
    with pytest.raises(DataError, match=r"'25/02/2017' \(line 3\).*'02/25/2017' \(line 4\)"):
        corpus_of(tmp_path, times)
    corpus = corpus_of(tmp_path, times, dates="day_first")
    assert corpus.texts == ["0", "1"]
    assert dict(corpus.dropped) == {"rows whose created_at is not a time": 1}


def test_other_forms_of_time_stay_as_they_were_beside_day_first_ones(tmp_path):
    times = ["Jan 12 17:18:00 2017", "2017-02-01T00:00:00-05:00", "15.04.2017", "2017-04-16 02:40"]
    corpus = corpus_of(tmp_path, [*times, "45.13.2017", "31.4.17"])
    assert corpus.texts == ["0", "1", "2", "3"]
    assert dict(corpus.dropped) == {"rows whose created_at is not a time": 2}


@pytest.mark.parametrize("times", [["2017-01-12", "2017-02-01"], [1, 2]])
def test_a_key_for_dates_that_decides_nothing_is_noted(tmp_path, times):
    assert any("posts.dates: no effect" in note for note in corpus_of(tmp_path, times, dates="day_first").notes)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.datetimes(pd.Timestamp(1970, 1, 1), pd.Timestamp(2068, 1, 1)), min_size=1), st.data())
def test_a_column_comes_out_as_written_whatever_the_order_or_the_sign_between(tmp_path_factory, times, data):
    order = data.draw(st.sampled_from(["day_first", "month_first"]))
    sign = data.draw(st.sampled_from([".", "/", "-"]))
    year = data.draw(st.sampled_from(["%Y", "%y"]))
    form = sign.join(("%d", "%m", year) if order == "day_first" else ("%m", "%d", year)) + " %H:%M"
    texts = [f"{time:{form}}" for time in times]
    corpus = corpus_of(tmp_path_factory.mktemp("dates"), texts, dates=order)
    minutes = [time.replace(second=0, microsecond=0) for time in times]
    assert corpus.texts == [str(i) for i in np.argsort(np.array(minutes), kind="stable")]


@pytest.mark.parametrize("times", [["15032017", "01042017"], ["1032017", "01042017"]])
def test_dates_without_separators_are_refused_if_their_numbers_are_in_another_order(tmp_path, times):
    with pytest.raises(DataError, match=r"column 'created_at': .*'1.*' does not sort"):
        corpus_of(tmp_path, times)
    assert corpus_of(tmp_path, ["20170401", "20170315"]).texts == ["1", "0"]
    assert corpus_of(tmp_path, ["2017", "2016"]).texts == ["1", "0"]
    with pytest.raises(DataError, match="none of the 2 rows can be used"):
        corpus_of(tmp_path, ["", "null"])


def test_times_that_name_no_zone_beside_some_that_do_are_noted(tmp_path):
    corpus = corpus_of(tmp_path, ["2017-01-01 10:00+02:00", "2017-01-01 09:30", "2017-01-01T09:00Z"])
    assert corpus.texts == ["0", "2", "1"]
    assert any("read as UTC" in note for note in corpus.notes)
    assert not any("UTC" in note for note in corpus_of(tmp_path, ["2017-01-01 09:30", "2017-01-01"]).notes)
