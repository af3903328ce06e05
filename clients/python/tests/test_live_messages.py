"""The bytes of the strategy link: the samples of `protocols/tests/strategy_messages.rs`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pitlane import DecodeError, OrderStatus, Phase, Side
from pitlane.enums import ExecType, OrderType, TimeInForce, TransactionType
from pitlane.live import market_events as events
from pitlane.live import messages
from pitlane.live.reference import Reference
from pitlane.strategy_values import RequestRefused

HANDLE = (1 << 56) | (3 << 32) | 7
AT = 1_700_000_000_000_000_000
TICK = events.RawTick(1, 100, 1, 102, 2, -5, 3, True, 77, AT + 1)
TERMS = messages.Terms(200_000_000, 10_025_000_000, 0, 0, 1, 3, 0, 1, 1, 1, True, False, False)
ENTERED = events.OrderEntered(
    HANDLE,
    "s1",
    "",
    ExecType.PENDING_NEW,
    OrderStatus.PENDING_NEW,
    "",
    200_000_000,
    10_025_000_000,
    None,
    1,
    Side.SELL,
    OrderType.LIMIT,
    TimeInForce.GTC,
)
REPORT = events.StatusReport(
    HANDLE,
    "s1.1",
    "s1",
    200,
    50,
    1_000,
    50,
    1_000,
    1,
    ExecType.TRADE,
    OrderStatus.PARTIALLY_FILLED,
    "",
    Side.BUY,
    OrderType.STOP_LIMIT,
    TimeInForce.IOC,
)
REFUSAL = events.RequestRefusal(HANDLE, "s1", "q4", True, OrderStatus.NEW, "order-finished")
POSITION = events.PositionState(-3, -300, 12)
BOOKED = events.Booked(11, "s1", TransactionType.SELL, 1, -3, 100, 1, "USD", POSITION, -7)
BODIES = [
    ENTERED,
    ENTERED._replace(exec_type=ExecType.REJECTED),
    REPORT,
    REPORT._replace(reason="bad-lot"),
    REFUSAL,
    REFUSAL._replace(is_cancel=False),
    events.Forgotten(HANDLE, "s1"),
    BOOKED,
    BOOKED._replace(type=TransactionType.CREDIT, security_id=None, int_id=""),
    events.PositionAdjusted(1, POSITION),
    events.CashAdjusted("USD", 10),
    events.TradingDay(-2),
    events.PhaseReported(Phase.RUNNING),
]
EVENTS = [events.ShardEvent(seq, AT, body) for seq, body in enumerate(BODIES, 1)]
REPLIES = [
    messages.Welcome(
        5,
        2,
        4,
        3,
        (100, 200),
        3_000,
        [messages.Head(1, 2), messages.Head(3, 4)],
        True,
        70,
        80,
        "k",
        [1],
        [("a", "b")],
        True,
        False,
    ),
    messages.Refused("no"),
    messages.Wait("später"),
    messages.UnknownSession(),
    messages.PieceReply(7, b"\1\2\3"),
    messages.Missed([events.NumberedEvent(1, event.seq - 1, event) for event in EVENTS], True),
    messages.Gone(),
    messages.Follows(TICK),
    messages.Follows(None),
    messages.Accepted(),
    messages.Declined("strategy-not-permitted"),
    messages.Busy(),
]
REQUESTS = [
    messages.Hello(9, "here:1", [1, 2]),
    messages.Resume(9, [1, 2]),
    messages.Piece(9, True, 7),
    messages.Fetch(9, [3]),
    messages.Follow(9, 4, True),
    messages.Heartbeat(9, 5, [3], True),
    messages.Failed(9, "why"),
    messages.Bye(9),
    messages.CommandRequest(9, messages.Submit("s1", TERMS)),
    messages.CommandRequest(9, messages.Modify(HANDLE, "s1.1", messages.Changes(5, 6, 7, 5, 8))),
    messages.CommandRequest(9, messages.Cancel(HANDLE, "q1")),
    messages.CommandRequest(9, messages.Subscribe(3, 4, False)),
    messages.CommandRequest(9, messages.SetPhase(3, 4)),
]


def samples(kind):
    lines = (Path(__file__).parent / "data" / "strategy_messages.txt").read_text().splitlines()
    return [bytes.fromhex(line.split(" ")[1]) for line in lines if line.startswith(f"{kind} ")]


def test_replies_are_those_of_the_server():
    # Equal tuples of different types would be equal.
    decoded = [messages.decode_reply(data) for data in samples("reply")]
    assert [(type(reply), reply) for reply in decoded] == [(type(reply), reply) for reply in REPLIES]


def test_requests_are_those_of_the_server():
    assert [request.encode() for request in REQUESTS] == samples("request")


def test_batches_and_states_are_those_of_the_server():
    (batch,), (prices,), (state,) = samples("events"), samples("prices"), samples("state")
    assert messages.decode_events(batch) == messages.EventBatch(5, 9, [], [messages.Head(1, 2)])
    assert messages.decode_prices(prices) == messages.PriceBatch(5, 6, True, [TICK, TICK])
    decoded = messages.decode_state(state)
    assert [(item.shard, item.event) for item in decoded] == [(0, event) for event in EVENTS]
    assert [type(item.event.body) for item in decoded] == [type(body) for body in BODIES]


def test_no_part_of_a_message_is_another():
    for decode, kind in (
        (messages.decode_reply, "reply"),
        (messages.decode_events, "events"),
        (messages.decode_prices, "prices"),
        (messages.decode_state, "state"),
        (Reference, "reference"),
    ):
        for data in samples(kind)[:12]:
            for cut in range(len(data)):
                # Without the last parts there are no reserved accounts, and no limits.
                if not (kind == "reference" and data[:cut] in samples("reference")):
                    with pytest.raises(DecodeError):
                        decode(data[:cut])
            with pytest.raises(DecodeError):
                decode(data + b"\0")


def test_securities_are_found_by_id_and_by_symbol():
    for data in samples("reference"):
        reference = Reference(data)
        assert reference.find("ACME") == reference.find(1) == (1, "ACME", "USD", 1_000_000, 10**8, 10**8)
        assert reference.symbol(1) == "ACME" and reference.symbol(99) == ""
        assert reference.default_account(1) == 1
        for unknown in (99, "NONE"):
            with pytest.raises(RequestRefused, match="no such security"):
                reference.find(unknown)


def test_a_currency_may_have_more_than_four_characters():
    assert [Reference(data).find(2)[2] for data in samples("reference")] == ["USD", "USD", "USD", "FDUSD"]
