"""What a run that is gone on with has of its world: a file beside its checkpoints, if that was dear to make."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prism_mesa.errors import DataError, PrismWarning, shortened
from prism_mesa.runs.checkpoints.file import FORMAT, read_checkpoint
from prism_mesa.runs.checkpoints.names import FOLDER, WORLD
from prism_mesa.runs.config import Config
from prism_mesa.runs.identity import code_version
from prism_mesa.social.world.kept import KeptWorld, is_drawn, kept_world


def world_of(run: Path, config: Config, point: Mapping[str, Any]) -> KeptWorld | None:
    """Return what was drawn of a run's world; None if it is to be drawn again, which comes to the same.

    Args:
        run: The run's folder.
        config: Its configuration.
        point: The checkpoint that it goes on from.

    Warns:
        PrismWarning: If the file is damaged, or of another run.
    """
    file = run / FOLDER / WORLD
    if not file.is_file() or not is_drawn(config):
        return None
    try:
        kept = read_checkpoint(file)
        if kept.get("format") != FORMAT or kept.get("code") != code_version():
            return None
        return kept_world(kept, config, point["model"]["platform"]["first_network"])
    except (DataError, LookupError, TypeError) as error:
        told = str(error).removeprefix(f"{file}: ")
        warnings.warn(shortened(f"{file}: {told}: the world is made again"), PrismWarning, stacklevel=5)
    return None
