"""Limits of the connections of one client."""

# Below the 60 s after which the service closes an idle connection, so that no request is sent on a
# connection that is being closed.
KEEP_ALIVE_S = 30.0
# Enough for the concurrent calls of a busy strategy. The service accepts 1,024 connections from one
# address.
CONNECTIONS_MAX = 64
# Bytes read at once: most responses have less than 2 KiB, lists have more.
READ_BYTES = 256 * 1024
