"""The stream of events: one connection to the broker, shared by all subscriptions of a client."""
