"""Rows with any number of features: text, and formats that name the features of each row."""
