"""`streamlasso run`: a file or a pipe, learnt as it comes; predictions, a trace, a report, and nothing lost."""
