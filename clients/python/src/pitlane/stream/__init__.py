"""Subscriptions to events. All subscriptions of a client share one connection to the broker."""
