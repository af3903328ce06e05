# Derived from _async/__init__.py by tools/derive_sync.py: change that one.
"""The client for plain threads."""
