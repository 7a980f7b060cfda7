"""Who runs the runs of a study: one process each, here or on a cluster, behind one interface."""
