//! Codecs of basic types: numbers, flags, options, lists, texts.

use std::collections::{BTreeMap, VecDeque};

use super::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem};

macro_rules! number {
    ($($int:ty),+) => {
        $(impl Codec for $int {
            #[inline]
            fn encode(&self, out: &mut impl ByteSink) {
                out.put(&self.to_le_bytes());
            }

            #[inline]
            fn decode(from: &mut ByteReader<'_>) -> Result<$int, DecodeError> {
                from.array().map(<$int>::from_le_bytes)
            }
        })+
    };
}

number!(u8, u16, u32, u64, u128, i32, i64, i128);

/// Always eight bytes, on every machine.
impl Codec for usize {
    fn encode(&self, out: &mut impl ByteSink) {
        (*self as u64).encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<usize, DecodeError> {
        usize::try_from(u64::decode(from)?).map_err(|_| from.error(DecodeProblem::Value))
    }
}

impl Codec for bool {
    #[inline]
    fn encode(&self, out: &mut impl ByteSink) {
        out.put(&[*self as u8]);
    }

    #[inline]
    fn decode(from: &mut ByteReader<'_>) -> Result<bool, DecodeError> {
        match from.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(from.error(DecodeProblem::Value)),
        }
    }
}

impl<T: Codec> Codec for Option<T> {
    #[inline]
    fn encode(&self, out: &mut impl ByteSink) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }

    #[inline]
    fn decode(from: &mut ByteReader<'_>) -> Result<Option<T>, DecodeError> {
        Ok(if bool::decode(from)? { Some(T::decode(from)?) } else { None })
    }
}

impl<T: Codec> Codec for Box<T> {
    fn encode(&self, out: &mut impl ByteSink) {
        (**self).encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<Box<T>, DecodeError> {
        T::decode(from).map(Box::new)
    }
}

impl<A: Codec, B: Codec> Codec for (A, B) {
    fn encode(&self, out: &mut impl ByteSink) {
        self.0.encode(out);
        self.1.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<(A, B), DecodeError> {
        Ok((A::decode(from)?, B::decode(from)?))
    }
}

impl<T: Codec + Copy + Default, const N: usize> Codec for [T; N] {
    fn encode(&self, out: &mut impl ByteSink) {
        self.iter().for_each(|item| item.encode(out));
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<[T; N], DecodeError> {
        let mut items = [T::default(); N];
        for item in &mut items {
            *item = T::decode(from)?;
        }
        Ok(items)
    }
}

impl<T: Codec> Codec for Vec<T> {
    fn encode(&self, out: &mut impl ByteSink) {
        encode_list(self.iter(), out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<Vec<T>, DecodeError> {
        let mut list = Vec::new();
        decode_into(&mut list, from)?;
        Ok(list)
    }
}

impl<T: Codec> Codec for VecDeque<T> {
    fn encode(&self, out: &mut impl ByteSink) {
        encode_list(self.iter(), out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<VecDeque<T>, DecodeError> {
        Vec::decode(from).map(VecDeque::from)
    }
}

/// In key order, each key once.
impl<K: Codec + Ord + Copy, V: Codec> Codec for BTreeMap<K, V> {
    fn encode(&self, out: &mut impl ByteSink) {
        encode_count(self.len(), out);
        for (key, value) in self {
            key.encode(out);
            value.encode(out);
        }
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<BTreeMap<K, V>, DecodeError> {
        let mut map = BTreeMap::new();
        for _ in 0..u32::decode(from)? {
            let key = K::decode(from)?;
            let after = map.last_key_value().is_none_or(|(last, _)| *last < key);
            from.check(after, DecodeProblem::Value)?;
            map.insert(key, V::decode(from)?);
        }
        Ok(map)
    }
}

impl Codec for String {
    fn encode(&self, out: &mut impl ByteSink) {
        encode_count(self.len(), out);
        out.put(self.as_bytes());
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<String, DecodeError> {
        let count = u32::decode(from)?;
        let bytes = from.take(count as usize)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_string()),
            Err(_) => Err(from.error(DecodeProblem::Value)),
        }
    }
}

pub fn encode_list<'a, T: Codec + 'a>(items: impl ExactSizeIterator<Item = &'a T>, out: &mut impl ByteSink) {
    encode_count(items.len(), out);
    items.for_each(|item| item.encode(out));
}

/// Appends a list to one that may already have capacity. It trusts a count only as far as there are
/// bytes: it reserves more only after it has read more.
pub(crate) fn decode_into<T: Codec>(list: &mut Vec<T>, from: &mut ByteReader<'_>) -> Result<(), DecodeError> {
    let count = u32::decode(from)? as usize;
    from.check(count <= from.left(), DecodeProblem::Short)?;
    list.reserve(count.min(from.left() / size_of::<T>().max(1)));
    for _ in 0..count {
        list.push(T::decode(from)?);
    }
    Ok(())
}

pub(crate) fn encode_count(count: usize, out: &mut impl ByteSink) {
    u32::try_from(count).expect("every table has its maximum, far below this").encode(out);
}
