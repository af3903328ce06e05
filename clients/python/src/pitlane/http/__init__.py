"""HTTP/1.1 as the client needs it: JSON over kept connections to one service.

`message` has the requests and responses without a socket. `asynchronous` and `synchronous` have the
connections and the pool, for asyncio and for threads. A general HTTP library took ten times the CPU
time of the rest of an order, so the client has its own.
"""
