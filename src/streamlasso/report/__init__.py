"""A run as a person reads it: a summary of the stream, figures, and one HTML page."""
