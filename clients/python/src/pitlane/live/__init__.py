"""A strategy as a process of its own, connected to its server by the strategy link.

```text
Strategy ◄─ Callbacks ─ StrategyRunner ◄─ RemoteRunner ◄─ frames ─ socket ─ server
                            Core ─► requests ─► PendingRequests ─► frames ─►
```

`docs/strategy-link.md` describes the messages, and `pitlane strategy` is the same in Rust. All
modules except `process` are without a socket and without a clock.
"""
