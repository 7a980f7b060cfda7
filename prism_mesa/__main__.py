"""``python -m prism_mesa`` is ``prism``."""

from prism_mesa.cli.app import main

if __name__ == "__main__":
    main()
