//! Special terms of some orders and modifications.

use pitlane_engine::command::CommandKind;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::OrderHandle;
use pitlane_engine::terms::{ExecInst, SpecialTerms, Terms};

use super::ShardAndTwin;
use crate::dice::Dice;
use crate::test_market;

impl ShardAndTwin {
    /// Gives some requests special terms, which are sent in front of them, and now and then are
    /// missing.
    pub(super) fn with_special(&mut self, body: CommandKind) -> Result<CommandKind, String> {
        let Some(dice) = self.special.as_mut().filter(|_| is_request(&body)) else { return Ok(body) };
        let (is_given, is_sent, removes) = (dice.percent(35), dice.percent(97), dice.percent(50));
        let special = special_terms(dice);
        if is_given && is_sent {
            self.send_command(CommandKind::SpecialTerms(special))?;
            // The request behind it has the same token.
            self.token -= 1;
        }
        if let CommandKind::Submit { id, terms } = body {
            return Ok(CommandKind::Submit { id, terms: Terms { special: is_given, ..terms } });
        }
        // Some modifications leave the special terms as they are.
        if let CommandKind::Modify { order, id, changes } = body
            && (is_given || removes)
        {
            return Ok(CommandKind::Modify { order, id, changes: changes.with_special(is_given) });
        }
        Ok(body)
    }

    /// Checks that special terms are the twin's, and directly in front of an order that has some.
    pub(super) fn check_special(&self, events: &[Event]) -> Result<(), String> {
        for (at, event) in events.iter().enumerate() {
            let EventKind::Order(order) = &event.body else { continue };
            let before = at.checked_sub(1).map(|before| events[before].body);
            let shown = before.and_then(|body| {
                let EventKind::SpecialTerms(terms) = body else { return None };
                (terms.order == order.order).then_some(terms.special)
            });
            if shown.is_some() != order.terms.special {
                return Err(format!("special terms {shown:?} of {order:?}"));
            }
            let known = self.twin.order(order.order).and_then(|known| self.twin.orders[known].special);
            if order.order != OrderHandle::NONE && shown != known {
                return Err(format!("special terms: twin {known:?}, shard {shown:?}"));
            }
        }
        Ok(())
    }
}

fn is_request(body: &CommandKind) -> bool {
    matches!(body, CommandKind::Submit { .. } | CommandKind::Modify { .. })
}

/// Returns special terms, most of which a simulated venue refuses.
fn special_terms(dice: &mut Dice) -> SpecialTerms {
    let texts: [&[u8]; 4] = [b"1", b"1 5", b"G", b"6 A"];
    let quantities = [None, Some("0"), Some("1"), Some("2"), Some("5"), Some("100"), Some("0.00000001")];
    let mut qty = || dice.pick(&quantities).map(test_market::qty);
    let (min_qty, max_floor) = (qty(), qty());
    let exec_inst = match dice.percent(50) {
        true => ExecInst::parse(texts[dice.index(texts.len())]).unwrap_or_default(),
        false => ExecInst::default(),
    };
    SpecialTerms { exec_inst, min_qty, max_floor }
}
