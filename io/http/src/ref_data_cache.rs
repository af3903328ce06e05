//! Responses about reference data, rendered once for each set.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::HeaderValue;
use pitlane_engine::refdata::RefData;
use pitlane_journal::name_of;
use pitlane_protocols::rest::{Search, SecurityVO};
use serde::Serialize;

use super::response::{HttpResponse, JsonRows};
use super::streamed_list::{ROWS_PER_PORTION, StreamedList};

/// The cache for the reference data in force.
pub(crate) struct CurrentRefData(RefCell<Rc<RefDataCache>>);

impl CurrentRefData {
    pub(crate) fn new(cache: RefDataCache) -> CurrentRefData {
        CurrentRefData(RefCell::new(Rc::new(cache)))
    }

    pub(crate) fn cache(&self) -> Rc<RefDataCache> {
        self.0.borrow().clone()
    }

    pub(crate) fn set(&self, cache: RefDataCache) {
        *self.0.borrow_mut() = Rc::new(cache);
    }
}

/// Rendered responses for one set of reference data.
pub(crate) struct RefDataCache {
    pub reference: Arc<RefData>,
    /// Hash of this set, by which the journal identifies it too.
    pub name: u64,
    pub etag: HeaderValue,
    lists: RefCell<[Option<Bytes>; 4]>,
}

/// The lists that are cached.
#[derive(Clone, Copy)]
pub(crate) enum RefDataList {
    Accounts,
    Securities,
    Families,
    Exchanges,
}

impl RefDataCache {
    pub(crate) fn new(reference: Arc<RefData>) -> RefDataCache {
        let name = name_of(&reference);
        let etag = HeaderValue::try_from(format!("\"{name:016x}\"")).expect("digits in quotation marks");
        RefDataCache { reference, name, etag, lists: RefCell::default() }
    }

    /// Returns a list from the cache, and renders it first if need be.
    pub(crate) fn list<T: Serialize>(
        &self,
        list: RefDataList,
        rows: impl Iterator<Item = T>,
    ) -> HttpResponse {
        let mut lists = self.lists.borrow_mut();
        let made = lists[list as usize].get_or_insert_with(|| {
            let mut bytes = Vec::new();
            JsonRows::default().push(&mut bytes, rows, true);
            bytes.into()
        });
        HttpResponse::from_json(made.clone()).with_etag(self.etag.clone())
    }

    /// Streams the securities that match a search, or all.
    pub(crate) fn securities(&self, search: Search, limit: usize) -> HttpResponse {
        let reference = self.reference.clone();
        let (mut at, mut left, mut rows) = (0, limit, JsonRows::default());
        let portions = StreamedList::new(move |bytes| {
            let portion = &reference.securities()[at..];
            let portion = &portion[..portion.len().min(ROWS_PER_PORTION)];
            at += portion.len();
            let found = portion.iter().filter(|row| search.matches(row, &reference));
            let found: Vec<_> = found.take(left).map(|row| SecurityVO::of(row, &reference)).collect();
            left -= found.len();
            let goes_on = at < reference.securities().len() && left > 0;
            rows.push(bytes, found.iter(), !goes_on);
            goes_on
        });
        HttpResponse::streamed(portions).with_etag(self.etag.clone())
    }
}
