"""Studies: each computes a table and saves it; its figure is drawn from the table."""
