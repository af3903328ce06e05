"""Ids of orders. The service never creates two orders with the same id, so a retry is safe."""

from os import urandom


def new_order_id() -> str:
    """Returns a random id with 128 bits, which makes it unique.

    It has letters, digits and dashes only, so it is one segment of a topic and of a path without
    escapes.
    """
    return f"py-{urandom(16).hex()}"
