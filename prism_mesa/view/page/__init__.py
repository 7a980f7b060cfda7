"""The page that `prism app` serves: a running model, or the playback of a finished run."""
