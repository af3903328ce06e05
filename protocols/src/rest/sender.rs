//! Senders of orders, modifications and cancels.

use pitlane_engine::sender::{Protocol, Sender, SenderAddress, SenderId, SenderText, SentBy};
use pitlane_engine::view::View;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// Sender of an order, a modification or a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SenderVO {
    /// The user, the token or the strategy. Absent: no login was required, or the platform itself
    /// acted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub login: Option<TextVO>,
    /// The IP address of the request. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<AddressVO>,
    /// REST, FIX, STOMP, STRATEGY, INTERNAL (the platform itself), or UNLISTED (more senders than
    /// the server can list between two starts).
    pub protocol: &'static str,
    /// The client's CompID for FIX, the host name for a strategy in its own process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub session: Option<TextVO>,
}

impl SenderVO {
    /// Returns `None` if the sender is unknown, as for orders of an earlier version.
    pub fn of(id: SenderId, sender: Option<&Sender>) -> Option<SenderVO> {
        let alone = |protocol| SenderVO { login: None, address: None, protocol, session: None };
        match id {
            SenderId::INTERNAL => Some(alone(protocol_name(Protocol::Internal))),
            SenderId::UNLISTED => Some(alone("UNLISTED")),
            _ => sender.map(SenderVO::known),
        }
    }

    fn known(sender: &Sender) -> SenderVO {
        let text = |text: SenderText| (!text.is_empty()).then_some(TextVO(text));
        SenderVO {
            login: text(sender.login),
            address: (sender.address != SenderAddress::NONE).then_some(AddressVO(sender.address)),
            protocol: protocol_name(sender.protocol),
            session: text(sender.session),
        }
    }
}

/// Senders of one order's requests, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentByVO {
    pub submitted: Option<SenderVO>,
    pub modified: Option<SenderVO>,
    pub canceled: Option<SenderVO>,
}

impl SentByVO {
    pub fn of(sent: &SentBy, view: &View) -> SentByVO {
        let shown = |id: SenderId| SenderVO::of(id, view.sender(id));
        SentByVO {
            submitted: shown(sent.submitted),
            modified: shown(sent.modified),
            canceled: shown(sent.canceled),
        }
    }
}

/// Returns the name of a protocol.
pub fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Internal => "INTERNAL",
        Protocol::Rest => "REST",
        Protocol::Fix => "FIX",
        Protocol::Stomp => "STOMP",
        Protocol::Strategy => "STRATEGY",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextVO(pub SenderText);

impl Serialize for TextVO {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressVO(pub SenderAddress);

impl Serialize for AddressVO {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}
