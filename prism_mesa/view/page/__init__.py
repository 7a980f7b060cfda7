"""The page that `prism app` serves: a model that runs, or a run that is played back."""
