# Generated from _async/__init__.py by tools/derive_sync.py. Change that file instead.
"""The client for plain threads."""
