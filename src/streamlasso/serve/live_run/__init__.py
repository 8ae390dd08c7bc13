"""The page of `streamlasso run --live`."""
