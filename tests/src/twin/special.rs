//! Terms that few orders have. They arrive in front of their request.

use pitlane_engine::command::Command;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{SpecialTerms, Terms};

use super::Twin;

impl Twin {
    pub(super) fn announce(&mut self, command: &Command, special: SpecialTerms) {
        self.announced.retain(|(source, _, _)| source.port != command.source.port);
        self.announced.push((command.source, command.token, special));
    }

    /// Takes the terms of this request. Terms of another request of the port are lost.
    pub(super) fn take_announced(&mut self, command: &Command) {
        let of_port = self.announced.iter().position(|(source, _, _)| source.port == command.source.port);
        self.special = of_port.map(|at| self.announced.remove(at)).and_then(|(source, token, special)| {
            (source == command.source && token == command.token).then_some(special)
        });
    }

    pub(super) fn check_special(&self, terms: &Terms) -> Reason {
        if !terms.special {
            return Reason::None;
        }
        let Some(special) = self.special else { return Reason::LaneFull };
        let security = self.reference.security(terms.security).expect("the reference was checked");
        let lot = self.reference.family_of(security).lot_size.raw();
        let is_odd = |qty: i64| qty < 0 || qty % lot != 0;
        if [special.min_qty, special.max_floor].into_iter().flatten().any(|qty| is_odd(qty.raw())) {
            return Reason::BadLot;
        }
        if special.min_qty.is_some_and(|least| least > terms.qty) {
            return Reason::MinQtyNotTaken;
        }
        if !self.is_simulated(terms.security) {
            return Reason::None;
        }
        if special.exec_inst.codes().any(|code| code != b'1' && code != b'5') {
            return Reason::ExecInstNotTaken;
        }
        if special.min_qty.is_some_and(|least| least.raw() != 0) {
            return Reason::MinQtyNotTaken;
        }
        match special.max_floor {
            Some(shown) if shown < terms.qty => Reason::MaxFloorNotTaken,
            Some(_) | None => Reason::None,
        }
    }
}
