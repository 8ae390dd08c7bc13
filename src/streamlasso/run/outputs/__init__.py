"""What a run writes while rows come: predictions, and the trace."""
