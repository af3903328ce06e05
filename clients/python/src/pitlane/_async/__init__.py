"""The client for asyncio. `tools/derive_sync.py` generates the modules of `_sync` from these."""
