//! Things that the interfaces call by a word in capitals.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::codes::Word;

/// One of a closed list of words, written exactly so: `BUY`, not `buy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Named<T>(pub T);

impl<T: Word> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.word())
    }
}

impl<'de, T: Word> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named<T>, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        T::from_word(&text).map(Named).ok_or_else(|| {
            let words: Vec<_> = T::VALUES.iter().map(|value| value.word()).collect();
            let shown: String = text.chars().take(32).collect();
            de::Error::custom(format_args!("`{shown}` is none of {}", words.join(", ")))
        })
    }
}
