"""The STOMP session, without a socket and with a virtual clock."""

from pitlane.stomp.codec import Decoder, Frame, encode
from pitlane.stomp.session import CONNECT_S_MAX, Connected, Ended, Message, Receipt, StompSession


def opened(heart_beat="5000,5000"):
    session = StompSession("here", "me", "secret", 5.0)
    session.connect(0.0)
    sent = frames(session, 0.0)
    assert sent[0].headers == {
        "accept-version": "1.2,1.1",
        "host": "here",
        "heart-beat": "5000,5000",
        "login": "me",
        "passcode": "secret",
    }
    session.handle_bytes(0.0, encode(Frame("CONNECTED", {"version": "1.2", "heart-beat": heart_beat})))
    assert session.poll_event() == Connected("1.2")
    return session


def frames(session, now):
    return list(Decoder().feed(session.poll_transmit(now)))


def events(session):
    return list(iter(session.poll_event, None))


def test_a_message_has_its_subscription_and_topic():
    session = opened()
    session.subscribe("s1", "tick.*", {"last-value": "true"})
    (sent,) = frames(session, 0.0)
    assert sent.headers == {"id": "s1", "destination": "/topic/tick.*", "receipt": "s1", "last-value": "true"}
    data = encode(Frame("RECEIPT", {"receipt-id": "s1"}))
    data += encode(Frame("MESSAGE", {"subscription": "s1", "destination": "/topic/tick.1"}, b"{}"))
    session.handle_bytes(1.0, data)
    assert events(session) == [Receipt("s1"), Message("s1", "tick.1", b"{}")]


def test_a_heart_beat_is_sent_before_the_interval_ends():
    session = opened()
    assert session.poll_timeout() == 3.75
    session.handle_timeout(3.7)
    assert session.poll_transmit(3.7) == b""
    session.handle_timeout(3.75)
    assert session.poll_transmit(3.75) == b"\n"
    assert session.poll_timeout() == 7.5


def test_silence_of_twice_the_interval_ends_the_session():
    session = opened()
    session.handle_bytes(4.0, b"\n")
    session.handle_timeout(13.9)
    assert events(session) == []
    session.handle_timeout(14.0)
    assert events(session) == [Ended("no heart-beat")]
    assert session.poll_timeout() is None


def test_a_broker_without_heart_beats_has_no_timeout():
    session = opened("0,0")
    assert session.poll_timeout() is None
    session.handle_timeout(1e9)
    assert events(session) == []


def test_a_session_ends_if_connect_is_not_answered():
    session = StompSession("here", None, None, 5.0)
    session.connect(0.0)
    assert session.poll_timeout() == CONNECT_S_MAX
    session.handle_timeout(CONNECT_S_MAX)
    assert isinstance(session.poll_event(), Ended)


def test_an_error_names_its_request_and_is_the_last_event():
    session = opened()
    data = encode(Frame("ERROR", {"message": "no", "receipt-id": "s1"})) + encode(Frame("RECEIPT", {"receipt-id": "x"}))
    session.handle_bytes(0.0, data)
    session.subscribe("s2", "tick.*", {})
    assert events(session) == [Ended("no", "s1")]
    assert session.poll_transmit(0.0) == b""


def test_an_unexpected_frame_ends_the_session():
    for frame in (Frame("CONNECTED"), Frame("HELLO")):
        session = opened()
        session.handle_bytes(0.0, encode(frame))
        assert isinstance(session.poll_event(), Ended)
    session = StompSession("here", None, None, 5.0)
    session.connect(0.0)
    session.handle_bytes(0.0, encode(Frame("MESSAGE", {}, b"{}")))
    assert isinstance(session.poll_event(), Ended)
    session = StompSession("here", None, None, 5.0)
    session.handle_bytes(0.0, encode(Frame("CONNECTED", {"heart-beat": "a,b"})))
    assert isinstance(session.poll_event(), Ended)
