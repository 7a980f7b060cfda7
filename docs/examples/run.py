"""Agents and a reasoner of your own: objects that you pass to `run`, because no configuration file can name them."""

import pandas as pd
from agents import add_spreaders
from reasoners import sceptics

from prism_mesa import load_config, measure, run

MEASURES = ["measures:untrue_read", "measures:untrue_reshares"]


def main() -> None:
    """Run the configuration as it is, with spreaders, and decided by sceptics; print the measures."""
    config = load_config("config.yaml")
    labels_in_prompts = load_config("config.yaml", ["attributes.labelled.told=true", "name=sceptics"])
    runs = {
        "as it stands": run(config),
        "with spreaders": run(load_config("config.yaml", ["name=spreaders"]), prepare=add_spreaders),
    }
    with sceptics() as reasoner:
        runs["decided by sceptics"] = run(labels_in_prompts, reasoner=reasoner)
    print(pd.DataFrame({name: measure(result, MEASURES) for name, result in runs.items()}).T.round(3))


if __name__ == "__main__":
    main()
