"""Fetches what the test of the page needs beside Chromium: the front end of the page, and axe-core."""

from pathlib import Path

from prism_mesa.view.server.front_end import fetch_front_end, front_end_folder, read_packages

if __name__ == "__main__":
    fetch_front_end(front_end_folder())
    fetch_front_end(front_end_folder(), read_packages(Path(__file__).with_name("axe_core.json")))
