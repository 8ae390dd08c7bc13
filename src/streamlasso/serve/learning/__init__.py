"""A model that learns from rows, and what people see of it."""
