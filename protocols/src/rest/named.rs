//! Values that the interfaces name by a word in capitals.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::codes::WireName;

/// One of a closed list of names, which must match exactly: `BUY`, not `buy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamedValue<T>(pub T);

impl<T: WireName> Serialize for NamedValue<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.wire_name())
    }
}

impl<'de, T: WireName> Deserialize<'de> for NamedValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NamedValue<T>, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        T::from_wire_name(&text).map(NamedValue).ok_or_else(|| {
            let words: Vec<_> = T::VALUES.iter().map(|value| value.wire_name()).collect();
            let shown: String = text.chars().take(32).collect();
            de::Error::custom(format_args!("`{shown}` is none of {}", words.join(", ")))
        })
    }
}
