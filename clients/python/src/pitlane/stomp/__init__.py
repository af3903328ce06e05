"""STOMP 1.2 as a consumer speaks it, without its socket: frames, and the session."""
