"""The STOMP codec: the result does not depend on where the data is cut."""

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
DATA = b"\n\r\n" + b"\n\n".join(encode(frame) for frame in FRAMES) + b"\n"


def stripped(frames):
    """Removes the header that `encode` adds."""
    return [
        (frame.command, {name: value for name, value in frame.headers.items() if name != "content-length"}, frame.body)
        for frame in frames
    ]


def test_encoded_frames_are_decoded():
    assert stripped(Decoder().feed(DATA)) == stripped(FRAMES)


def test_frames_are_decoded_wherever_the_data_is_cut_in_two():
    for cut in range(len(DATA) + 1):
        decoder = Decoder()
        frames = [*decoder.feed(DATA[:cut]), *decoder.feed(DATA[cut:])]
        assert stripped(frames) == stripped(FRAMES), cut


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_frames_are_decoded_from_any_pieces_with_any_line_ends(ends):
    raw = b"\n".join(
        [b"MESSAGE", b"a:1", b"a:2", b"content-length:3", b"", b"x\ny\0", b"", b"RECEIPT", b"receipt-id:7", b"", b"\0"]
    )
    raw = raw.replace(b"\n", ends).replace(b"x" + ends + b"y", b"x\ny")
    rng = random.Random(7)
    for _ in range(300):
        decoder, frames, rest = Decoder(), [], raw
        while rest:
            size = rng.randint(1, 5)
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
def test_invalid_frames_are_rejected_whole_or_in_pieces(raw):
    with pytest.raises(FrameError):
        list(Decoder().feed(raw))
    decoder, half = Decoder(), len(raw) // 2
    with pytest.raises(FrameError):
        list(decoder.feed(raw[:half]))
        list(decoder.feed(raw[half:]))


def test_unescape_reverses_escape():
    rng = random.Random(3)
    for _ in range(500):
        text = "".join(rng.choice("\\\n\r:nrcx") for _ in range(rng.randint(0, 8)))
        assert unescape(escape(text)) == text
