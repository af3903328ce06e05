"""The client side of STOMP 1.2 without a socket: the codec and the session."""
