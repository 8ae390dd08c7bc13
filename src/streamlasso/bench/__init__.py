"""The leaderboard: streamlasso against its peers, on a stream of yours or on several."""
