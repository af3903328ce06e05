//! Any bytes as a message of a strategy in a process of its own, as a reply to one, or as a frame
//! of the strategy link: no panic, and a decoded message encodes to the same bytes.

use pitlane_protocols::remote::link::{
    FRAME_BYTES_MAX, FrameBuffer, LINK_VERSION, ServerFrame, StrategyFrame,
};
use pitlane_protocols::remote::strategy::{
    EventBatch, PriceBatch, RemoteReply, RemoteRequest, decode_state, encode_state,
};

/// Decodes the bytes as each kind of message. The first byte is the version.
pub fn read(bytes: &[u8]) {
    if let Ok(request) = RemoteRequest::decode(bytes) {
        assert_eq!(request.encode(), bytes, "{request:?}");
    }
    if let Ok(reply) = RemoteReply::decode(bytes) {
        assert_eq!(reply.encode(), bytes, "{reply:?}");
    }
    if let Ok(batch) = EventBatch::decode(bytes) {
        assert_eq!(batch.encode(), bytes, "{batch:?}");
    }
    if let Ok(prices) = PriceBatch::decode(bytes) {
        assert_eq!(prices.encode(), bytes, "{prices:?}");
    }
    if let Ok(state) = decode_state(bytes) {
        assert_eq!(encode_state(&state), bytes, "{state:?}");
    }
    read_frames(bytes);
}

/// Decodes the bytes as frames of the strategy link, from either side.
fn read_frames(bytes: &[u8]) {
    let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX);
    buffer.extend(bytes);
    while let Ok(Some(frame)) = buffer.next_frame() {
        read_frame(frame);
    }
    read_frame(bytes);
}

fn read_frame(frame: &[u8]) {
    const LENGTH_BYTES: usize = 4;
    match StrategyFrame::decode(frame) {
        // Of a login of another version only the version is read.
        Ok(StrategyFrame::Login { version, .. }) if version != LINK_VERSION => {}
        Ok(decoded) => assert_eq!(&decoded.encode()[LENGTH_BYTES..], frame, "{decoded:?}"),
        Err(_) => {}
    }
    if let Ok(decoded) = ServerFrame::decode(frame) {
        assert_eq!(&decoded.encode()[LENGTH_BYTES..], frame, "{decoded:?}");
    }
}
