//! Images of what types are made of: numbers, flags, options, lists, texts.

use std::collections::{BTreeMap, VecDeque};

use super::{Damage, Image, Problem, Reader, Sink};

macro_rules! number {
    ($($int:ty),+) => {
        $(impl Image for $int {
            #[inline]
            fn encode(&self, out: &mut impl Sink) {
                out.put(&self.to_le_bytes());
            }

            #[inline]
            fn decode(from: &mut Reader<'_>) -> Result<$int, Damage> {
                from.array().map(<$int>::from_le_bytes)
            }
        })+
    };
}

number!(u8, u16, u32, u64, u128, i32, i64, i128);

/// As eight bytes, wherever it was written.
impl Image for usize {
    fn encode(&self, out: &mut impl Sink) {
        (*self as u64).encode(out);
    }

    fn decode(from: &mut Reader<'_>) -> Result<usize, Damage> {
        usize::try_from(u64::decode(from)?).map_err(|_| from.damage(Problem::Value))
    }
}

impl Image for bool {
    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        out.put(&[*self as u8]);
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<bool, Damage> {
        match from.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(from.damage(Problem::Value)),
        }
    }
}

impl<T: Image> Image for Option<T> {
    #[inline]
    fn encode(&self, out: &mut impl Sink) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }

    #[inline]
    fn decode(from: &mut Reader<'_>) -> Result<Option<T>, Damage> {
        Ok(if bool::decode(from)? { Some(T::decode(from)?) } else { None })
    }
}

impl<T: Image> Image for Box<T> {
    fn encode(&self, out: &mut impl Sink) {
        (**self).encode(out);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Box<T>, Damage> {
        T::decode(from).map(Box::new)
    }
}

impl<A: Image, B: Image> Image for (A, B) {
    fn encode(&self, out: &mut impl Sink) {
        self.0.encode(out);
        self.1.encode(out);
    }

    fn decode(from: &mut Reader<'_>) -> Result<(A, B), Damage> {
        Ok((A::decode(from)?, B::decode(from)?))
    }
}

impl<T: Image + Copy + Default, const N: usize> Image for [T; N] {
    fn encode(&self, out: &mut impl Sink) {
        self.iter().for_each(|item| item.encode(out));
    }

    fn decode(from: &mut Reader<'_>) -> Result<[T; N], Damage> {
        let mut items = [T::default(); N];
        for item in &mut items {
            *item = T::decode(from)?;
        }
        Ok(items)
    }
}

impl<T: Image> Image for Vec<T> {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(self.iter(), out);
    }

    fn decode(from: &mut Reader<'_>) -> Result<Vec<T>, Damage> {
        let mut list = Vec::new();
        decode_into(&mut list, from)?;
        Ok(list)
    }
}

impl<T: Image> Image for VecDeque<T> {
    fn encode(&self, out: &mut impl Sink) {
        encode_list(self.iter(), out);
    }

    fn decode(from: &mut Reader<'_>) -> Result<VecDeque<T>, Damage> {
        Vec::decode(from).map(VecDeque::from)
    }
}

/// In the order of the keys, each key once.
impl<K: Image + Ord + Copy, V: Image> Image for BTreeMap<K, V> {
    fn encode(&self, out: &mut impl Sink) {
        encode_count(self.len(), out);
        for (key, value) in self {
            key.encode(out);
            value.encode(out);
        }
    }

    fn decode(from: &mut Reader<'_>) -> Result<BTreeMap<K, V>, Damage> {
        let mut map = BTreeMap::new();
        for _ in 0..u32::decode(from)? {
            let key = K::decode(from)?;
            let after = map.last_key_value().is_none_or(|(last, _)| *last < key);
            from.check(after, Problem::Value)?;
            map.insert(key, V::decode(from)?);
        }
        Ok(map)
    }
}

impl Image for String {
    fn encode(&self, out: &mut impl Sink) {
        encode_count(self.len(), out);
        out.put(self.as_bytes());
    }

    fn decode(from: &mut Reader<'_>) -> Result<String, Damage> {
        let count = u32::decode(from)?;
        let bytes = from.take(count as usize)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_string()),
            Err(_) => Err(from.damage(Problem::Value)),
        }
    }
}

pub(crate) fn encode_list<'a, T: Image + 'a>(
    items: impl ExactSizeIterator<Item = &'a T>,
    out: &mut impl Sink,
) {
    encode_count(items.len(), out);
    items.for_each(|item| item.encode(out));
}

/// Adds a list to one that may have room already. A count is only believed as far as there are bytes: room for more is made when
/// more has been read.
pub(crate) fn decode_into<T: Image>(list: &mut Vec<T>, from: &mut Reader<'_>) -> Result<(), Damage> {
    let count = u32::decode(from)? as usize;
    from.check(count <= from.left(), Problem::Short)?;
    list.reserve(count.min(from.left() / size_of::<T>().max(1)));
    for _ in 0..count {
        list.push(T::decode(from)?);
    }
    Ok(())
}

fn encode_count(count: usize, out: &mut impl Sink) {
    u32::try_from(count).expect("every table has its maximum, far below this").encode(out);
}
