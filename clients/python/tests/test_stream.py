"""Events of the real broker over every transport, lost connections, and slow readers."""

import asyncio
import signal
import threading
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from conftest import TIMEOUT_S, run
from pitlane import (
    AsyncPitlane,
    Bar,
    Booking,
    BrokerRefused,
    CashChange,
    DecodeError,
    Gap,
    GenericEvent,
    Level,
    LoginRefused,
    LoginRequired,
    NotPermitted,
    OrderTerms,
    OrderUpdate,
    OtherEvent,
    Overflow,
    PhaseChange,
    Pitlane,
    Policy,
    PositionChange,
    StreamError,
    StreamLost,
    SubscriptionChange,
    Tick,
    Trade,
)
from pitlane.enums import OrderStatus, Phase
from pitlane.events import event_of
from pitlane.stream.subscription_state import SubscriptionState
from proxy import Proxy

SAMPLES = Path(__file__).resolve().parents[2] / "sbe/samples.txt"


def read_until(subscription, matches):
    """Reads events until one matches, and returns all of them."""
    seen = []
    while not seen or not matches(seen[-1]):
        seen.append(subscription.get(timeout_s=TIMEOUT_S))
    return seen


@pytest.mark.parametrize("transport", ["tcp", "ws"])
def test_ticks_match_their_security(shared, transport):
    with Pitlane(shared.url, transport=transport) as client:
        securities = {security.id: security for security in client.securities()}
        seen = set()
        for tick in client.subscribe("tick.*"):
            assert isinstance(tick, Tick)
            security = securities[tick.security_id]
            assert tick.topic == f"tick.{security.id}" and tick.symbol == security.symbol
            assert tick.bid is None or tick.ask is None or tick.bid < tick.ask
            assert tick.last is None or tick.last % security.tick_size == 0
            seen.add(tick.security_id)
            if len(seen) == 5:
                break


@pytest.mark.parametrize("transport", ["tcp", "ws"])
def test_ticks_arrive_over_tls(shared, transport):
    with Pitlane(shared.secure_url, verify=shared.certificate, transport=transport) as client:
        with client.ticks(1) as ticks:
            assert ticks.get(timeout_s=TIMEOUT_S).security_id == 1


def test_ticks_arrive_with_asyncio(shared):
    async def watch(transport):
        async with AsyncPitlane(shared.url, transport=transport) as client:
            async for tick in client.ticks():
                if tick.security_id == 1:
                    return tick
            return None

    for transport in ("tcp", "ws"):
        assert run(watch(transport)).symbol == "AAPL"


def test_every_trade_has_a_number(client):
    numbers = {}
    with client.trades() as trades, client.trades("AAPL") as one:
        for _ in range(50):
            trade = trades.get(timeout_s=TIMEOUT_S)
            assert isinstance(trade, Trade) and trade.price > 0
            assert trade.trade_id > numbers.get(trade.security_id, 0)
            numbers[trade.security_id] = trade.trade_id
        assert one.get(timeout_s=TIMEOUT_S).symbol == "AAPL"


def test_conflated_ticks_arrive_and_a_wrong_window_is_rejected(client):
    with client.ticks(1, conflate_ms=10) as ticks, client.subscribe("tick.1", conflate_ms=60_000) as slow:
        for _ in range(3):
            assert ticks.get(timeout_s=TIMEOUT_S).security_id == 1
        assert slow.get(timeout_s=TIMEOUT_S).security_id == 1
        with pytest.raises(TimeoutError):
            slow.get(timeout_s=0.5)
    for wrong in (9, 60_001, -1):
        with pytest.raises(ValueError, match="conflate_ms is from 10 to 60000"):
            client.ticks(1, conflate_ms=wrong)
    for wrong in ("10", 10.5, True):
        with pytest.raises(TypeError):
            client.ticks(1, conflate_ms=wrong)


def test_binary_ticks_are_those_of_json(shared):
    def read(ticks, into):
        tick = ticks.get(timeout_s=TIMEOUT_S)
        into[tick.security_id, tick.seq] = replace(tick, symbol=None, feed=None)

    with Pitlane(shared.url) as client:
        binary, text = {}, {}
        with client.ticks(binary=True, policy=Policy.EVERY) as some, client.ticks(policy=Policy.EVERY) as others:
            while len(binary.keys() & text.keys()) < 5:
                read(some, binary)
                read(others, text)
        for key in binary.keys() & text.keys():
            assert binary[key] == text[key]
    with Pitlane(shared.url, transport="ws") as client, client.ticks(1, binary=True) as ticks:
        assert ticks.get(timeout_s=TIMEOUT_S).security_id == 1


def test_a_binary_message_is_one_tick_or_several():
    bodies = [bytes.fromhex(line.split(" ")[0]) for line in SAMPLES.read_text().splitlines() if '"TICK"' in line]
    state = SubscriptionState(threading.Condition(), "tick.*", is_binary=True, policy=Policy.EVERY)
    assert state.headers == {"accept": "application/x-pitlane-sbe", "batch": "true"}
    state.put("tick.*", bodies[0])
    state.put("tick.*", bodies[0] + bodies[1])
    ticks = [state.take() for _ in range(3)]
    assert [tick.topic for tick in ticks] == ["tick.1"] * 3 and ticks[0] == ticks[1] != ticks[2]
    assert ticks[0].bid == Decimal("99.99") and ticks[2].bid is None
    assert state.take() is None
    state.put("tick.*", bodies[0] + bodies[1][:-1])
    with pytest.raises(DecodeError, match="ends inside a message"):
        state.take()
    trade = next(line for line in SAMPLES.read_text().splitlines() if '"TRADE"' in line)
    other = SubscriptionState(threading.Condition(), "tick.*", is_binary=True)
    other.put("tick.*", bytes.fromhex(trade.split(" ")[0]))
    with pytest.raises(DecodeError, match="not ticks"):
        other.take()


def test_order_updates_cover_the_lifecycle_of_an_order(client):
    with client.orders("MOMENTUM") as updates, client.subscribe("*.MOMENTUM.>") as everything:
        order = client.buy(7, 2, strategy="MOMENTUM")
        history = read_until(updates, lambda update: update.status is OrderStatus.FILLED)
        assert all(isinstance(update, OrderUpdate) and update.int_id == order.int_id for update in history)
        assert history[0].status is OrderStatus.PENDING_NEW
        assert history[-1].filled_quantity == 2 and history[-1].avg_price == client.order(order.int_id).avg_price
        kinds = {type(event) for event in read_until(everything, lambda event: isinstance(event, CashChange))}
        assert kinds >= {OrderUpdate, OrderTerms, CashChange}
    with client.orders("MOMENTUM", "odd.id*>") as odd:
        client.cancel(client.buy(7, 2, limit=1, strategy="MOMENTUM", int_id="odd.id*>"))
        assert read_until(odd, lambda update: update.status is OrderStatus.CANCELED)[0].int_id == "odd.id*>"


def test_every_kind_of_event_is_typed(client):
    wanted = {
        Tick,
        Bar,
        OrderUpdate,
        OrderTerms,
        PositionChange,
        Booking,
        CashChange,
        SubscriptionChange,
        PhaseChange,
        GenericEvent,
    }
    with client.subscribe(">", policy=Policy.EVERY) as everything, client.subscribe("bar.*.1s") as bars:
        client.buy(8, 1, strategy="PAIRS")
        client.subscribe_market_data(8, "PAIRS")
        client.set_phase("PAIRS", Phase.STOP)
        client.publish("hello", {"to": "all", "price": 1})
        seen = {Bar} if isinstance(bars.get(timeout_s=TIMEOUT_S), Bar) else set()
        while not wanted <= seen:
            event = everything.get(timeout_s=TIMEOUT_S)
            seen.add(type(event))
            if isinstance(event, Booking):
                assert event.transaction.security_id == 8
            if isinstance(event, GenericEvent):
                assert event.data == {"to": "all", "price": 1}
            assert event.at.tzinfo is not None
        assert OtherEvent not in seen
    client.set_phase("PAIRS", Phase.RUNNING)


def test_a_lost_connection_is_reported_and_reopened(new_service):
    service = new_service().start()
    with Pitlane(service.url) as client, client.ticks() as ticks, client.orders() as updates:
        ticks.get(timeout_s=TIMEOUT_S)
        service.end(signal.SIGKILL)
        lost = read_until(ticks, lambda event: isinstance(event, Gap))[-1]
        assert not lost.is_over and lost.pattern == "tick.*" and lost.reason
        service.start()
        back = read_until(ticks, lambda event: isinstance(event, Gap))[-1]
        assert back.is_over and back.since == lost.since < back.until
        assert isinstance(ticks.get(timeout_s=TIMEOUT_S), Tick)
        client.buy(1, 1)
        assert [type(event) for event in read_until(updates, lambda event: isinstance(event, OrderUpdate))] == [
            Gap,
            Gap,
            OrderUpdate,
        ]


def test_no_event_is_repeated_or_missed_between_gaps(new_service):
    """The connection is cut repeatedly. Between two gaps, the updates of an order are complete."""
    service = new_service().start()
    proxy = Proxy(service.addresses["stomp"], 5)
    proxy.stop_cutting()
    try:
        with Pitlane(service.url, broker=f"stomp://{proxy.address}") as client, client.orders() as updates:
            for _ in range(5):
                order = client.buy(1, 1)
                seen = read_until(
                    updates, lambda event: isinstance(event, OrderUpdate) and event.status is OrderStatus.FILLED
                )
                assert [update.status for update in seen] == ["PENDING_NEW", "NEW", "FILLED"]
                assert {update.int_id for update in seen} == {order.int_id}
                proxy.cut_all()
                read_until(updates, lambda event: isinstance(event, Gap) and event.is_over)
    finally:
        proxy.close()


def test_a_disconnected_client_reconnects(new_service):
    service = new_service().start()

    async def watch():
        async with AsyncPitlane(service.url) as client:
            async with client.ticks(1) as ticks:
                while not (sessions := await client.sessions()):
                    # The list is updated once per second; reading ticks passes the time.
                    await ticks.get(TIMEOUT_S)
                await client.end_session(sessions[0].id)
                gaps = []
                while len(gaps) < 2:
                    event = await ticks.get(TIMEOUT_S)
                    gaps += [event] if isinstance(event, Gap) else []
                return gaps

    lost, back = run(watch())
    assert lost.reason == "the service ends this session"
    assert back.is_over


def test_a_slow_reader_gets_the_newest_ticks(client):
    with client.ticks(1) as ticks, client.subscribe("tick.1", policy=Policy.EVERY) as every:
        numbers = [every.get(timeout_s=TIMEOUT_S).seq for _ in range(6)]
        newest = ticks.get(timeout_s=TIMEOUT_S)
        assert newest.seq >= numbers[-2] and ticks.replaced >= 3
        assert numbers == sorted(set(numbers))


def test_a_reader_too_slow_for_every_event_gets_overflow(client):
    with client.subscribe("tick.*", policy=Policy.EVERY, capacity=3) as events, client.ticks() as clock:
        for _ in range(1000):
            clock.get(timeout_s=TIMEOUT_S)
            if events._state.has_ended:
                break
        assert [type(events.get()) for _ in range(3)] == [Tick] * 3
        with pytest.raises(Overflow):
            events.get()
        # Other subscriptions continue.
        assert isinstance(clock.get(timeout_s=TIMEOUT_S), Tick)


@pytest.mark.parametrize("pattern", ["", "a..b", "ti*", "a.>.b", "tick.>x", "a\nb"])
def test_an_invalid_pattern_is_rejected_before_it_is_sent(client, pattern):
    with pytest.raises(ValueError):
        client.subscribe(pattern)


def test_a_stalled_connection_is_a_gap_and_a_quiet_topic_is_not(new_service):
    service = new_service().start()
    proxy = Proxy(service.addresses["stomp"], 6)
    proxy.stop_cutting()
    try:
        with Pitlane(service.url, broker=f"stomp://{proxy.address}", heart_beat_s=1) as client:
            with client.subscribe("log-event.error") as quiet, client.ticks(1) as ticks:
                # Longer than the heart-beat timeout of the service, so the heart-beats arrive.
                first = ticks.get(timeout_s=TIMEOUT_S)
                read_until(ticks, lambda tick: tick.ts - first.ts > 3_000_000_000)
                with pytest.raises(TimeoutError):
                    quiet.get(timeout_s=0)
                proxy.stall()
                lost = quiet.get(timeout_s=TIMEOUT_S)
                assert isinstance(lost, Gap) and lost.reason == "no heart-beat"
                proxy.resume()
                assert quiet.get(timeout_s=TIMEOUT_S).is_over
    finally:
        proxy.close()


def test_a_refused_subscription_does_not_end_the_others(new_service):
    service = new_service().user("bob", "read", "correct horse battery", "PAIRS").start()
    with Pitlane(service.url, login=("bob", "correct horse battery")) as client, client.orders("PAIRS") as updates:
        with pytest.raises(BrokerRefused, match="not permitted"):
            client.orders("MOMENTUM").get(timeout_s=TIMEOUT_S)
        assert [updates.get(timeout_s=TIMEOUT_S).is_over for _ in range(2)] == [False, True]
        with pytest.raises(BrokerRefused, match="SEND is not permitted"):
            client.publish("hello", {})
        with pytest.raises(ValueError):
            client.publish("not one.segment", {})
        with pytest.raises(NotPermitted):
            client.buy(1, 1)


def test_a_login_is_checked_over_every_transport(new_service):
    service = new_service().user("ann", "trade", "correct horse battery").start()
    for transport in ("tcp", "ws"):
        with Pitlane(service.url, login=("ann", "correct horse battery"), transport=transport) as client:
            assert client.identity().name == "ann"
            with client.ticks(1) as ticks:
                assert ticks.get(timeout_s=TIMEOUT_S).security_id == 1
    with Pitlane(service.url, login=("ann", "wrong"), broker=f"stomp://{service.addresses['stomp']}") as rejected:
        with pytest.raises(LoginRefused):
            next(iter(rejected.ticks(1)))
        with pytest.raises(LoginRequired):
            rejected.accounts()


def test_a_token_replaces_a_login(new_service):
    service = new_service()
    token = service.token("bot", "trade")
    with Pitlane(service.start().url, token=token) as client:
        assert client.identity().name == "bot"
        with client.ticks(1) as ticks:
            assert ticks.get(timeout_s=TIMEOUT_S).security_id == 1


def test_an_unreachable_broker_is_an_error(shared):
    with Pitlane(shared.url, broker="stomp://127.0.0.1:9", timeout_s=0.3) as client:
        with pytest.raises(StreamLost, match=r"127\.0\.0\.1"):
            client.ticks()
    with Pitlane(
        shared.secure_url, timeout_s=1, transport="ws", broker=f"wss://{shared.addresses['https']}/stomp"
    ) as client:
        with pytest.raises(StreamLost, match="certificate"):
            client.ticks()
    with Pitlane(shared.url, broker="http://127.0.0.1:1") as client:
        with pytest.raises(StreamError):
            next(client.ticks())


def test_closing_ends_the_readers(shared):
    client = Pitlane(shared.url)
    ticks = client.ticks()
    reader = threading.Thread(target=lambda: [None for _ in ticks])
    reader.start()
    client.close()
    reader.join(TIMEOUT_S)
    assert not reader.is_alive()
    assert not [thread for thread in threading.enumerate() if thread.name == "pitlane-events"]


def test_many_events_are_collected(client):
    ticks = client.collect("tick.*", count=30)
    assert len(ticks) == 30 and len({(tick.topic, tick.seq) for tick in ticks}) == 30
    begin = time.monotonic()
    assert client.collect("log-event.error", count=1, seconds=0.1) == []
    assert time.monotonic() - begin < TIMEOUT_S


def test_a_message_is_decoded_by_its_type_or_rejected():
    with pytest.raises(DecodeError):
        event_of("tick.1", b"{}")
    with pytest.raises(DecodeError):
        event_of("tick.1", b'{"type":"TICK","seq":1,"ts":1}')
    assert isinstance(event_of("new.1", b'{"type":"NEW","seq":1,"ts":1}'), OtherEvent)
    body = b'{"type":"BOOK","seq":1,"ts":1,"securityId":1,"bids":[{"price":1.5,"size":2}],"asks":[],'
    body += b'"dateTime":"2026-11-15T00:00:00Z"}'
    assert event_of("book.1", body).bids == (Level(Decimal("1.5"), Decimal(2)),)


def test_a_cancelled_task_leaves_no_task_behind(shared):
    async def watch():
        async with AsyncPitlane(shared.url) as client:
            subscription = client.ticks()
            await subscription.ready()
            reader = asyncio.ensure_future(subscription.get())
            await asyncio.sleep(0)
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            assert isinstance(await subscription.get(TIMEOUT_S), Tick)
        return len(asyncio.all_tasks())

    assert run(watch()) <= 2
