"""From a connection to a call of the service, and back to an answer."""
