"""Frames and octets: the same outcome wherever the octets are cut."""

import random

import pytest

from pitlane.stomp.codec import BODY_BYTES_MAX, HEAD_BYTES_MAX, Decoder, Frame, FrameError, encode, escape, unescape

FRAMES = [
    Frame("MESSAGE", {"destination": "/topic/tick.1", "subscription": "s1", "message-id": "1-1"}, b'{"bid":1.5}'),
    Frame("MESSAGE", {"a:b": "c\nd\\e\rf", "empty": ""}, b"with \0 inside \0\n\n"),
    Frame("RECEIPT", {"receipt-id": "é"}),
    Frame("ERROR", {"message": "no"}, "grüße".encode()),
    Frame("CONNECTED", {"version": "1.2", "server": "a\\b:c"}),
]
OCTETS = b"\n\r\n" + b"\n\n".join(encode(frame) for frame in FRAMES) + b"\n"


def stripped(frames):
    """Without the header that `encode` adds."""
    return [
        (frame.command, {name: value for name, value in frame.headers.items() if name != "content-length"}, frame.body)
        for frame in frames
    ]


def test_what_was_encoded_is_decoded():
    assert stripped(Decoder().feed(OCTETS)) == stripped(FRAMES)


def test_the_same_frames_come_out_wherever_the_octets_are_cut_in_two():
    for cut in range(len(OCTETS) + 1):
        decoder = Decoder()
        frames = [*decoder.feed(OCTETS[:cut]), *decoder.feed(OCTETS[cut:])]
        assert stripped(frames) == stripped(FRAMES), cut


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_the_same_frames_come_out_of_any_pieces_with_any_line_ends(ends):
    raw = b"\n".join(
        [b"MESSAGE", b"a:1", b"a:2", b"content-length:3", b"", b"x\ny\0", b"", b"RECEIPT", b"receipt-id:7", b"", b"\0"]
    )
    raw = raw.replace(b"\n", ends).replace(b"x" + ends + b"y", b"x\ny")
    chance = random.Random(7)
    for _ in range(300):
        decoder, frames, rest = Decoder(), [], raw
        while rest:
            size = chance.randint(1, 5)
            frames += decoder.feed(rest[:size])
            rest = rest[size:]
        assert stripped(frames) == [("MESSAGE", {"a": "1"}, b"x\ny"), ("RECEIPT", {"receipt-id": "7"}, b"")]


@pytest.mark.parametrize(
    "raw",
    [
        b"MESSAGE\nno colon\n\n\0",
        b"MESSAGE\na:\\t\n\n\0",
        b"MESSAGE\na:\\\n\n\0",
        b"MESSAGE\ncontent-length:-1\n\n\0",
        b"MESSAGE\ncontent-length:x\n\n\0",
        b"MESSAGE\ncontent-length:2\n\nabc\0",
        b"MESSAGE\ncontent-length:99999999999\n\n",
        b"MESSAGE\n\xff:1\n\n\0",
        b"M" * (HEAD_BYTES_MAX + 1),
        b"MESSAGE\n\n" + b"x" * (BODY_BYTES_MAX + 1),
    ],
)
def test_what_is_no_frame_is_told_whole_or_in_pieces(raw):
    with pytest.raises(FrameError):
        list(Decoder().feed(raw))
    decoder, half = Decoder(), len(raw) // 2
    with pytest.raises(FrameError):
        list(decoder.feed(raw[:half]))
        list(decoder.feed(raw[half:]))


def test_escapes_come_back():
    chance = random.Random(3)
    for _ in range(500):
        text = "".join(chance.choice("\\\n\r:nrcx") for _ in range(chance.randint(0, 8)))
        assert unescape(escape(text)) == text
