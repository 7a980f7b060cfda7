"""The study of the README says what the README says that it says."""

import json
import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_study_of_the_readme_is_short_and_says_what_is_printed_there(prism, jobs, tmp_path):
    [text] = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert len(text.splitlines()) < 20
    (tmp_path / "feeds.yaml").write_text(text)
    code, out, err = prism("study", "run", "feeds.yaml", "--no-report", "--json")
    assert code == 0, err
    [verdict] = json.loads(out)["expectations"]
    assert verdict["sentence"] in README
    assert len(jobs) == 20
