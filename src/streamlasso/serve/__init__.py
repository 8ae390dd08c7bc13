"""A service that learns over HTTP: `streamlasso serve`. What it acknowledged is on disk."""
