"""Ids of orders. The service never makes a second order of the same id, and that is what makes asking again safe."""

from uuid import uuid4


def new_order_id() -> str:
    """Unique by chance alone: 122 bits. Letters, digits and dashes, so that it is one segment of a topic and of a path as it is."""
    return f"py-{uuid4().hex}"
