"""The sparse engine: a table of features, experts side by side, their mixture; one direction, in that order."""
