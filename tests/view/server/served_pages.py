"""Makes small runs, serves the page, and shows what it is told to, one line of JSON on stdin at a time.

A process of its own: Solara's server patches what tests of the same process would use.
"""

import json
import sys
import threading
from pathlib import Path

from prism_mesa.runs import config, economy, social
from prism_mesa.view.server.opened import PageContent, open_page
from prism_mesa.view.server.serving import serve

QUICK = {"agents": {"n": 60, "activity": 0.5, "post_rate": 0.2}, "network": {"mean_degree": 8}, "rounds": 6}


def make_runs(out):
    """Make the runs that tests look at, and return their folders by name."""
    made = {
        "one": social.run(config.make_config({**QUICK, "name": "one", "seed": 1}), out=out),
        "other": social.run(config.make_config({**QUICK, "name": "other", "feed": {"mode": "random"}}), out=out),
    }
    nations = config.read_config(
        config.EconomyConfig, {"name": "nations", "rounds": 4, "economy": {"policy": "taylor"}}
    )
    made["nations"] = economy.run_economy(nations, out=out)
    return {name: str(result.run_dir) for name, result in made.items()}


def listen():
    """Show what each line on stdin says; end with the last one."""
    for line in sys.stdin:
        wanted = json.loads(line)
        open_page(PageContent(wanted["kind"], tuple(map(Path, wanted["paths"])), tuple(wanted.get("overrides", ()))))
        print("shown", flush=True)
    print("over", flush=True)
    import os

    os._exit(0)


if __name__ == "__main__":
    runs = make_runs(Path(sys.argv[1]))
    threading.Thread(target=listen, daemon=True).start()
    serve("127.0.0.1", 0, on_open=lambda url: print(json.dumps({"url": url, "runs": runs}), flush=True))
