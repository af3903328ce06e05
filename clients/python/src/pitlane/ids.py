"""Ids of orders. The service never creates two orders with the same id, so a retry is safe."""

from uuid import uuid4


def new_order_id() -> str:
    """Returns a random id with 122 bits, which makes it unique.

    It has letters, digits and dashes only, so it is one segment of a topic and of a path without
    escapes.
    """
    return f"py-{uuid4().hex}"
