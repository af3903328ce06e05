"""The parts of a live strategy that need no server: bytes, phases, orders, bars, requests."""

from __future__ import annotations

import random
import re
import struct

import pytest
from pitlane import DecodeError, OrderStatus, Phase, Side
from pitlane.enums import ExecType, OrderType, TimeInForce, TransactionType
from pitlane.live import frames
from pitlane.live.bars import BarMaker, RawBar
from pitlane.live.codec import NO_HANDLE, Reader, Writer
from pitlane.live.connection import LinkAddress, parse_address, parse_addresses
from pitlane.live.lifecycle import path
from pitlane.live.market_events import (
    Booked,
    CashAdjusted,
    Forgotten,
    NumberedEvent,
    OrderEntered,
    PhaseReported,
    PositionState,
    RawTick,
    RequestRefusal,
    ShardEvent,
    StatusReport,
    TradingDay,
    read_event,
)
from pitlane.live.messages import (
    Accepted,
    Busy,
    Bye,
    Cancel,
    Changes,
    CommandRequest,
    Declined,
    Heartbeat,
    Modify,
    SetPhase,
    Submit,
    Terms,
    Wait,
    decode_events,
    decode_prices,
    decode_reply,
    decode_state,
)
from pitlane.live.order_table import FINISHED_MAX, OrderTable, TrackedOrder
from pitlane.live.pending_requests import BUSY_NS, NUMBERS_MAX, PendingRequests
from pitlane.live.reasons import REASONS
from pitlane.live.record import EventRecord, received_in
from pitlane.live.reference import Reference
from service import ROOT

UNIT = 10**8


def test_the_reasons_have_the_numbers_of_the_engine():
    source = (ROOT / "engine/src/reason.rs").read_text()
    listed = re.findall(r'^    \w+ = "([^"]+)",\s*"([^"]+)";', source[source.index("reasons! {") :], re.MULTILINE)
    assert list(REASONS) == [("", ""), *listed]


def test_a_command_has_the_bytes_of_the_description():
    terms = Terms(2 * UNIT, 100 * UNIT, 0, 0, 7, 3, 0, 1, 1, 3, True, False, False)
    encoded = CommandRequest(9, Submit("s42", terms)).encode()
    head = b"\x01\x05" + struct.pack("<Q", 9) + b"\0" * 8
    prices = struct.pack("<qqqQ", 2 * UNIT, 100 * UNIT, 0, 0)
    assert encoded == head + b"\0\x03s42" + prices + struct.pack("<IHH", 7, 3, 0) + b"\1\1\3" + b"\1\0\0\0"
    change = CommandRequest(9, Modify(5, "s42.1", Changes(None, 3, None, 1, None))).encode()
    assert change == head + b"\1" + struct.pack("<Q", 5) + b"\x05s42.1" + b"\x0a" + struct.pack("<q", 3) + b"\1"
    assert CommandRequest(9, Cancel(5, "q1")).encode() == head + b"\2" + struct.pack("<Q", 5) + b"\x02q1"
    assert CommandRequest(9, SetPhase(3, 2)).encode() == head + b"\x11\3\0\2"
    assert Bye(1).encode() == b"\x01\x08" + struct.pack("<Q", 1)


def test_the_frames_of_the_description_are_ours():
    page = (ROOT / "docs/strategy-link.md").read_text()
    listed = [bytes.fromhex(block) for block in re.findall(r"```text\n([0-9a-f\n]+)```", page)]
    terms = Terms(5 * UNIT, 10_025_000_000, 0, 0, 1, 2, 1, 1, 1, 1, True, False, False)
    assert listed[:3] == [
        frames.login("MOMENTUM", "pit_x"),
        frames.request(7, Heartbeat(9, 5, [3], True).encode()),
        frames.request(8, CommandRequest(9, Submit("s1", terms)).encode()),
    ]
    assert frames.FrameBuffer().feed(listed[3]) == [frames.ReplyFrame(8, b"\1\x08")]


def test_frames_arrive_in_pieces_of_any_size():
    sent = b""
    for kind, body in (
        (129, b"\x01\x04\0\0\0main\x10\x27\0\0"),
        (131, struct.pack("<Q", 7) + b"\x01\x08"),
        (130, b"\x01\0\0\0c\x01\0\0\0t\x01"),
    ):
        sent += struct.pack("<IB", len(body) + 1, kind) + body
    expected = [frames.LoggedIn(1, "main", 10_000), frames.ReplyFrame(7, b"\1\x08"), frames.LinkRefused("c", "t", True)]
    for size in range(1, len(sent) + 1):
        buffer, received = frames.FrameBuffer(), []
        for at in range(0, len(sent), size):
            received += buffer.feed(sent[at : at + size])
        assert received == expected
    assert decode_reply(b"\1\x08") == Accepted() and decode_reply(b"\1\2\1\0\0\0w") == Wait("w")


@pytest.mark.parametrize(
    "data",
    [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\1\0\0\0\x63", b"\2\0\0\0\x87\1", b"\x0a\0\0\0\x87" + b"\0" * 9],
)
def test_a_bad_frame_is_an_error(data):
    with pytest.raises(DecodeError):
        frames.FrameBuffer().feed(data)


def test_any_bytes_are_a_message_or_an_error():
    rng = random.Random(1)
    decoders = (
        decode_reply,
        decode_events,
        decode_prices,
        decode_state,
        Reference,
        lambda data: read_event(Reader(data)),
    )
    for _ in range(20_000):
        data = bytes(rng.choice((0, 1, 1, 2, 5, 11, 12, 255, rng.randrange(256))) for _ in range(rng.randrange(60)))
        for decode in decoders:
            try:
                decode(data)
            except DecodeError:
                pass
    for wrong in (b"", b"\2\x08", b"\1\x08\0", b"\1\x63", b"\1\x09\xff"):
        with pytest.raises(DecodeError):
            decode_reply(wrong)


def test_a_path_leads_through_every_phase_between():
    assert path(Phase.EXIT, Phase.RUNNING) == [Phase.INIT, Phase.PREFEED, Phase.START, Phase.RUNNING]
    assert path(Phase.RUNNING, Phase.EXIT) == [Phase.STOP, Phase.EXIT]
    assert path(Phase.INIT, Phase.STOP) == [Phase.STOP] and path(Phase.STOP, Phase.STOP) == []
    assert path(Phase.START, Phase.RUNNING) == [Phase.RUNNING] and path(Phase.STOP, Phase.INIT) == [Phase.INIT]
    assert path(Phase.RUNNING, Phase.INIT) is None and path(Phase.EXIT, Phase.STOP) is None


def entered(handle, int_id, what=ExecType.PENDING_NEW, status=OrderStatus.PENDING_NEW, orig=""):
    terms = (UNIT, 100 * UNIT, None, 1, Side.BUY, OrderType.LIMIT, TimeInForce.DAY)
    return OrderEntered(handle, int_id, orig, what, status, "", *terms)


def status(handle, int_id, what, state, orig="", filled=0):
    amounts = (UNIT, filled, 0, 0, 0, 1)
    return StatusReport(handle, int_id, orig, *amounts, what, state, "", Side.BUY, OrderType.LIMIT, TimeInForce.DAY)


def sent(table, root):
    order = TrackedOrder(root, root, 1, Side.BUY, UNIT, 100 * UNIT, None)
    table.add(order)
    return order


def test_an_order_keeps_its_first_id_through_modifications():
    table = OrderTable()
    order = sent(table, "s1")
    assert table.handle_terms(entered(7, "s1")) is order and not order.is_in_flight
    assert table.next_version(order) == "s1.1"
    table.handle_status(status(7, "s1.1", ExecType.REPLACED, OrderStatus.NEW, "s1"))
    assert (order.int_id, table.find_open("s1")) == ("s1.1", order)
    # A refused modification has used its id.
    assert table.next_version(order) == "s1.2"
    table.handle_refusal(RequestRefusal(7, "s1.1", "s1.2", False, OrderStatus.NEW, "bad-tick"))
    assert table.next_version(order) == "s1.3"
    table.handle_status(status(7, "s1.1", ExecType.TRADE, OrderStatus.FILLED, filled=UNIT))
    assert table.open == [] and table.root_of(7) == "s1"
    # A corrected fill opens it again; then it is forgotten.
    table.handle_status(status(7, "s1.1", ExecType.TRADE_CORRECT, OrderStatus.NEW))
    assert table.open == [order]
    table.handle_status(status(7, "s1.1", ExecType.CANCELED, OrderStatus.CANCELED))
    table.handle_forgotten(Forgotten(7, "s1.1"))
    assert table.root_of(7) is None
    assert table.handle_status(status(7, "s1.1", ExecType.CANCELED, OrderStatus.CANCELED)) is None


def test_the_state_contains_orders_of_an_earlier_process():
    table = OrderTable()
    table.handle_terms(entered(9, "s5.3", ExecType.ORDER_STATUS, OrderStatus.NEW, "s5.2"))
    (order,) = table.open
    assert (order.root, order.int_id, order.limit) == ("s5", "s5.3", 100 * UNIT)
    assert table.next_version(order) == "s5.4"


def test_the_number_of_finished_orders_is_bounded():
    table = OrderTable()
    for number in range(FINISHED_MAX + 10):
        sent(table, f"s{number}")
        table.handle_terms(entered(number, f"s{number}"))
        table.handle_status(status(number, f"s{number}", ExecType.CANCELED, OrderStatus.CANCELED))
    sent(table, "rejected")
    table.handle_terms(entered(NO_HANDLE, "rejected", ExecType.REJECTED, OrderStatus.REJECTED))
    assert table.open == [] and table.root_of(NO_HANDLE) is None
    assert len(table._finished) == FINISHED_MAX and table.root_of(5) is None


def tick(at, last=None, volume=0, bid=0, ask=0):
    traded = last is not None
    return RawTick(1, bid, int(bid > 0), ask, int(ask > 0), last or 0, 1, traded, volume, at)


def test_bars_are_those_of_the_service():
    maker = BarMaker(1, 10)
    assert maker.handle(tick(3)) is None
    assert maker.handle(tick(4, bid=100, ask=103)) is None
    assert maker.handle(tick(5, 110, 5)) is None and maker.handle(tick(9, 90, 7)) is None
    assert maker.handle(tick(25, 95, 8)) == RawBar(0, 101, 110, 90, 90, 7, 3)
    # A new day begins with volume zero.
    assert maker.handle(tick(26, 96, 2)) is None
    assert maker.handle(tick(31, 97, 3)) == RawBar(20, 95, 96, 95, 96, 3, 2)


def test_a_request_is_sent_again_until_it_is_answered():
    pending = PendingRequests()
    for int_id in ("a", "b", "c"):
        pending.order(1, Cancel(1, int_id))
    pending.ask(Bye(1))
    pending.ask(Bye(2))
    first = pending.poll(0, 10, 0)
    assert [number for number, _ in first] == [1, 2, 3, 4] and first[3][1] == Bye(1)
    assert pending.poll(5, 15, 4) == [] and pending.deadline() == 10
    assert pending.handle_answer(5, 1, Accepted()) is None
    assert pending.handle_answer(5, 2, Declined("bad-lot")) == (Cancel(1, "b"), "bad-lot")
    assert pending.handle_answer(5, 3, Busy()) is None
    assert pending.handle_answer(5, 4, Accepted()) is None
    # The second of the others waited for the first.
    assert pending.poll(6, 16, 4) == [(5, Bye(2))]
    again = pending.poll(5 + BUSY_NS, 30, 5)
    assert [request.command for _, request in again if isinstance(request, CommandRequest)] == [Cancel(1, "c")]
    pending.mark_answered("c")
    assert pending.handle_answer(7, again[-1][0], Accepted()) is None and pending.is_empty
    # An answer to an unknown message changes nothing.
    assert pending.handle_answer(7, 99, Declined("bad-lot")) is None


def test_the_number_of_awaited_answers_is_bounded():
    pending, number = PendingRequests(), 0
    for order in range(100):
        pending.order(1, Cancel(1, f"q{order}"))
    for round_number in range(NUMBERS_MAX // 100 + 5):
        number += len(pending.poll(round_number, round_number + 1, number))
    assert len(pending._ids) == NUMBERS_MAX
    pending.send_again()
    assert len(pending._ids) == 0 and pending.deadline() == 0


def test_a_record_is_read_after_a_restart(tmp_path):
    assert received_in("B 10 20\nE 0 12 order s1\nE 1 25 phase\nH 15 25\nE 0 17 x\n") == [17, 25]
    assert received_in("E 0 5 x\n") == []
    record = EventRecord(tmp_path, "a/b")
    assert record.received == []
    record.begun([3, 4])
    record.asked("s1")
    record.close()
    (file,) = tmp_path.iterdir()
    # A line that was cut off counts as not written.
    file.write_bytes(file.read_bytes() + b"H 9")
    again = EventRecord(tmp_path, "a/b")
    assert again.received == [3, 4]
    again.numbers([5, 6])
    again.close()
    assert file.read_text() == "B 3 4\nA s1\nH 5 6\n"


def test_a_record_has_the_lines_of_the_process_in_rust(tmp_path):
    position = PositionState(0, 0, 0)
    entered, filled = (ExecType.PENDING_NEW, OrderStatus.PENDING_NEW), (ExecType.TRADE, OrderStatus.FILLED)
    sides = (Side.BUY, OrderType.LIMIT, TimeInForce.DAY)
    bodies = [
        OrderEntered(1, "s1", "", *entered, "", 10 * UNIT, None, None, 1, *sides),
        StatusReport(1, "s1", "", UNIT, UNIT, 5, UNIT // 2, 41 * UNIT // 4, 1, *filled, "", *sides),
        RequestRefusal(1, "s1", "s2", True, OrderStatus.NEW, "unknown-order"),
        Booked(7, "s1", TransactionType.BUY, 1, -3 * UNIT, 10 * UNIT, 0, "USD", position, 0),
        Forgotten(1, "s1"),
        PhaseReported(Phase.RUNNING),
        CashAdjusted("USD", 1),
        TradingDay(20_000),
    ]
    record = EventRecord(tmp_path, "A")
    for seq, body in enumerate(bodies):
        record.event(NumberedEvent(1, 0, ShardEvent(seq, 0, body)))
    record.close()
    assert (tmp_path / "A.told").read_text().splitlines() == [
        "E 1 0 order s1 PENDING_NEW PENDING_NEW 10",
        "E 1 1 status s1 TRADE FILLED 1 0.5 10.25",
        "E 1 2 refused s2 unknown-order",
        "E 1 3 booked 7 s1 -3 10",
        "E 1 4 forgotten s1",
        "E 1 5 phase RUNNING",
        "E 1 6 adjusted",
        "E 1 7 other",
    ]


def test_addresses():
    assert parse_address("pitlane://127.0.0.1:1") == LinkAddress("127.0.0.1", 1, "", False)
    assert parse_address("pitlanes://[::1]:2") == LinkAddress("::1", 2, "", True)
    assert parse_address("pitlane://host") == LinkAddress("host", 9882, "", False)
    assert parse_address("unix:/a/b") == parse_address("unix:///a/b") == LinkAddress("", 0, "/a/b", False)
    assert len(parse_addresses("pitlane://a:1, pitlane://b:2")) == 2
    for wrong in ("", "unix:", "http://a", "pitlane://", "pitlane://u@h:1", "pitlane://h:x", "pitlane://h:1/p"):
        with pytest.raises(ValueError):
            parse_address(wrong)


def test_amounts_are_written_as_they_are_read():
    reader = Reader(Writer().decimal(-5).order_id("s1").flag(True).text("ä").numbers([1, 2]).done())
    assert (reader.decimal(), reader.order_id(), reader.flag(), reader.text()) == (-5, "s1", True, "ä")
    assert reader.list(reader.u64) == [1, 2] and reader.left == 0
