"""What the service keeps on disk."""
