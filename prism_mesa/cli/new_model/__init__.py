"""The files of a project with a model of your own (`prism new --model`)."""
