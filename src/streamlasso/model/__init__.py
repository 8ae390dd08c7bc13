"""What `streamlasso run` and `serve` learn with."""
