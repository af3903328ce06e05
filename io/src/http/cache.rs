//! `POST /rest/cache/clear-all`: the reference data are read again from disk, and every copy is made anew. Orders and positions
//! are untouched; what is invalid changes nothing.

use std::cell::{Cell, RefCell};

use pitlane_engine::command::Body;
use rtrb::{Consumer, Producer};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::News;
use super::answer::Answer;
use super::ask::Ask;
use super::body::{self, Input};
use super::house::House;
use super::problem::Problem;
use crate::platform::reread::Reread;
use crate::wake::Bell;

/// Where reference data come from that main has read again, and to whom they are handed on.
#[derive(Debug)]
pub struct Rereads {
    answers: Consumer<Result<Reread, String>>,
    gateways: Vec<Producer<Reread>>,
    bells: Vec<Bell>,
}

impl Rereads {
    pub fn new(
        answers: Consumer<Result<Reread, String>>,
        gateways: Vec<Producer<Reread>>,
        bells: Vec<Bell>,
    ) -> Rereads {
        Rereads { answers, gateways, bells }
    }
}

/// One at a time is read again; who asks meanwhile is told so.
#[derive(Debug, Default)]
pub struct Cache {
    rereads: RefCell<Option<Rereads>>,
    answer: RefCell<Option<Result<Reread, String>>>,
    come: Notify,
    is_busy: Cell<bool>,
}

impl Cache {
    pub fn new(rereads: Option<Rereads>) -> Cache {
        Cache { rereads: RefCell::new(rereads), ..Cache::default() }
    }

    /// Takes over what main has read.
    pub fn poll(&self) -> usize {
        let mut rereads = self.rereads.borrow_mut();
        let Some(answer) = rereads.as_mut().and_then(|rereads| rereads.answers.pop().ok()) else { return 0 };
        *self.answer.borrow_mut() = Some(answer);
        self.come.notify_one();
        1
    }

    async fn read_again(&self, house: &House) -> Result<Reread, Problem> {
        // An answer that nobody waited for any more is not ours.
        self.answer.take();
        (house.tell)(News::RereadAsked);
        let come = async {
            loop {
                if let Some(answer) = self.answer.take() {
                    return answer;
                }
                self.come.notified().await;
            }
        };
        let answer = timeout(house.settings.answer_timeout, come).await.map_err(|_| Problem::no_answer())?;
        answer.map_err(|faults| {
            let lines: Vec<_> = faults.lines().map(str::to_string).collect();
            Problem::unprocessable("bad-reference-data", faults.clone()).with("faults", lines)
        })
    }

    /// Tells every gateway; all shards know already.
    fn hand_on(&self, reread: &Reread) {
        let mut rereads = self.rereads.borrow_mut();
        let Some(Rereads { gateways, bells, .. }) = rereads.as_mut() else { return };
        for (lane, bell) in gateways.iter_mut().zip(bells) {
            if lane.push(reread.clone()).is_err() {
                tracing::warn!("a gateway has not taken the last reference data yet; it goes on with those");
            }
            bell.wake();
        }
    }
}

pub async fn clear_all(house: &House, ask: &Ask<'_>, body: Input) -> Result<Answer, Problem> {
    ask.no_query()?;
    body::read_nothing(house, body).await?;
    ask.sight(&house.floor.reference()).touch_all()?;
    house.is_open()?;
    let cache = &house.cache;
    if cache.rereads.borrow().is_none() {
        return Err(Problem::unprocessable("no-reference-files", "there is nothing to be read again"));
    }
    if cache.is_busy.replace(true) {
        return Err(Problem::conflict("cache-busy", "the reference data are being read again already"));
    }
    let _ready_again = ReadyAgain(&cache.is_busy);
    let reread = cache.read_again(house).await?;
    if reread.name != house.shelf().name {
        house.do_it(Body::Reference { name: reread.name }).await?;
        house.adopt(reread.reference.clone());
        cache.hand_on(&reread);
    }
    house.do_it(Body::Snapshot { port: house.floor.port() }).await
}

/// Whether it ends well or not, the next may ask.
struct ReadyAgain<'a>(&'a Cell<bool>);

impl Drop for ReadyAgain<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}
