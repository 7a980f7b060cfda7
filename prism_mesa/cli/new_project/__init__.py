"""The files that `prism new` writes, unchanged; their texts name no folder, so they fit anywhere."""
