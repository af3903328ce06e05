"""The client for asyncio. What is below `_sync` is derived from here by `tools/derive_sync.py`."""
