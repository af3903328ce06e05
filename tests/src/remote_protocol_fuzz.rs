//! Any bytes as a message of a strategy in a process of its own, or as a reply to one: no panic,
//! and a decoded message encodes to the same bytes.

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
}
