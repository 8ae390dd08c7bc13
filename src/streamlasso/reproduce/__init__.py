"""The studies of the paper: each computes a table and saves it; its figures are drawn from the table."""
