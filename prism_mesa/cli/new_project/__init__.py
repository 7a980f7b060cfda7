"""The files that `prism new` copies; they name no folder, so they work in any folder."""
