"""The files that `prism new` writes, as they lie here; its texts name no folder, so they fit into any."""
