//! What every adapter must do, written once: each case is played on a rig, which is a controllable
//! venue behind its adapter. Cases that cannot happen at a venue are left out there, and the test
//! names them.

use pitlane_engine::event::OrderReport;
use pitlane_engine::terms::Status;

use super::binance_venue::BinanceVenue;
use super::fix_venue::FixVenue;
use super::sim_venue::SimVenue;

/// What a venue can be made to do with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VenueAction {
    Accept,
    Reject,
    Fill(u32),
    /// Sends the last fill once more.
    FillAgain,
    /// Performs or rejects the pending request.
    Grant,
    Refuse,
    /// Loses the connection; what the venue does then is not received.
    Disconnect,
    Reconnect,
    /// Reconnects with a reset of the sequence numbers on both sides: missed messages cannot be
    /// resent.
    ReconnectWithReset,
    /// The service restarts and reconnects.
    Restart,
    /// The client closes the position, for which the service cancels the order by itself.
    Close,
    /// Busts the last fill.
    Bust,
    /// Sends unknown values.
    Babble,
}

/// A venue behind its adapter, and a client that sends orders there.
pub(crate) trait VenueRig {
    /// Submits an order to buy at 100.
    fn submit(&mut self, id: &str, qty: u32);
    fn cancel(&mut self, id: &str, order: &str);
    fn replace(&mut self, id: &str, order: &str, qty: u32);
    /// Performs an act, and returns whether it can happen at this venue.
    fn act(&mut self, order: &str, act: VenueAction) -> bool;
    /// Returns the client's last report of its order, and the number of fills that it received.
    fn order(&self, id: &str) -> (OrderReport, usize);
}

/// A case; `None`: something in it cannot happen at this venue.
type ConformanceCase = fn(&mut dyn VenueRig) -> Option<()>;

const CASES: [(&str, ConformanceCase); 17] = [
    ("accept", accept),
    ("reject", reject),
    ("fill in parts", fill_in_parts),
    ("cancel", cancel),
    ("cancel refused", cancel_refused),
    ("cancel by a close after a restart", cancel_by_a_close_after_a_restart),
    ("cancel with a part filled", cancel_with_a_part_filled),
    ("replace", replace),
    ("replace refused", replace_refused),
    ("fill before the acknowledgement", fill_before_the_acknowledgement),
    ("late fill", late_fill),
    ("disconnect with orders in flight", disconnect_with_orders_in_flight),
    ("reconnect with missed executions", reconnect_with_missed_executions),
    ("duplicate executions", duplicate_executions),
    ("missed executions over a reset", missed_executions_over_a_reset),
    ("bust of a filled order", bust_of_a_filled_order),
    ("unknown values", unknown_values),
];

/// Cases that the simulated venue cannot have: it is part of the shard, so it cannot be
/// disconnected, repeat itself, or be overtaken; and it grants whatever can be granted.
const NOT_SIMULATED: [&str; 10] = [
    "cancel refused",
    "cancel by a close after a restart",
    "replace refused",
    "fill before the acknowledgement",
    "late fill",
    "disconnect with orders in flight",
    "reconnect with missed executions",
    "duplicate executions",
    "missed executions over a reset",
    "bust of a filled order",
];

#[test]
fn the_fix_adapter_conforms() {
    for (name, case) in CASES {
        assert_eq!(case(&mut FixVenue::new()), Some(()), "{name} is left out");
    }
}

#[test]
fn the_binance_adapter_conforms() {
    let mut left_out = Vec::new();
    for (name, case) in CASES {
        if case(&mut BinanceVenue::new()).is_none() {
            left_out.push(name);
        }
    }
    assert_eq!(left_out, ["missed executions over a reset", "bust of a filled order"]);
}

#[test]
fn the_simulated_venue_conforms() {
    let mut left_out = Vec::new();
    for (name, case) in CASES {
        if case(&mut SimVenue::new(name == "reject")).is_none() {
            left_out.push(name);
        }
    }
    let expected: Vec<&str> = NOT_SIMULATED.into_iter().chain(["unknown values"]).collect();
    assert_eq!(left_out, expected);
}

fn accept(rig: &mut dyn VenueRig) -> Option<()> {
    rig.submit("a", 10);
    happens(rig, "a", VenueAction::Accept)?;
    stands(rig, "a", Status::New, 0);
    Some(())
}

fn reject(rig: &mut dyn VenueRig) -> Option<()> {
    rig.submit("a", 10);
    happens(rig, "a", VenueAction::Reject)?;
    stands(rig, "a", Status::Rejected, 0);
    Some(())
}

fn fill_in_parts(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    happens(rig, "a", VenueAction::Fill(4))?;
    stands(rig, "a", Status::PartiallyFilled, 4);
    happens(rig, "a", VenueAction::Fill(6))?;
    stands(rig, "a", Status::Filled, 10);
    assert_eq!(rig.order("a").1, 2);
    Some(())
}

fn cancel(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    rig.cancel("b", "a");
    happens(rig, "a", VenueAction::Grant)?;
    stands(rig, "a", Status::Canceled, 0);
    Some(())
}

fn cancel_refused(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    rig.cancel("b", "a");
    happens(rig, "a", VenueAction::Refuse)?;
    stands(rig, "a", Status::New, 0);
    rig.cancel("c", "a");
    happens(rig, "a", VenueAction::Grant)?;
    stands(rig, "a", Status::Canceled, 0);
    Some(())
}

/// The cancel of a close has no id of its own, and one that was refused before does not hold it
/// back.
fn cancel_by_a_close_after_a_restart(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    happens(rig, "a", VenueAction::Fill(4))?;
    rig.cancel("b", "a");
    happens(rig, "a", VenueAction::Refuse)?;
    stands(rig, "a", Status::PartiallyFilled, 4);
    happens(rig, "a", VenueAction::Restart)?;
    happens(rig, "a", VenueAction::Close)?;
    stands(rig, "a", Status::PendingCancel, 4);
    happens(rig, "a", VenueAction::Grant)?;
    stands(rig, "a", Status::Canceled, 4);
    Some(())
}

fn cancel_with_a_part_filled(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    happens(rig, "a", VenueAction::Fill(4))?;
    rig.cancel("b", "a");
    happens(rig, "a", VenueAction::Grant)?;
    stands(rig, "a", Status::Canceled, 4);
    Some(())
}

fn replace(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    happens(rig, "a", VenueAction::Fill(4))?;
    rig.replace("b", "a", 6);
    happens(rig, "a", VenueAction::Grant)?;
    stands(rig, "a", Status::PartiallyFilled, 4);
    happens(rig, "a", VenueAction::Fill(2))?;
    stands(rig, "a", Status::Filled, 6);
    Some(())
}

fn replace_refused(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    rig.replace("b", "a", 6);
    happens(rig, "a", VenueAction::Refuse)?;
    stands(rig, "a", Status::New, 0);
    happens(rig, "a", VenueAction::Fill(10))?;
    stands(rig, "a", Status::Filled, 10);
    Some(())
}

fn fill_before_the_acknowledgement(rig: &mut dyn VenueRig) -> Option<()> {
    rig.submit("a", 10);
    if rig.order("a").0.status != Status::PendingNew {
        return None;
    }
    happens(rig, "a", VenueAction::Fill(4))?;
    happens(rig, "a", VenueAction::Accept)?;
    stands(rig, "a", Status::PartiallyFilled, 4);
    Some(())
}

fn late_fill(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    rig.cancel("b", "a");
    happens(rig, "a", VenueAction::Grant)?;
    happens(rig, "a", VenueAction::Fill(3))?;
    stands(rig, "a", Status::Canceled, 3);
    Some(())
}

fn disconnect_with_orders_in_flight(rig: &mut dyn VenueRig) -> Option<()> {
    rig.submit("a", 10);
    happens(rig, "a", VenueAction::Disconnect)?;
    stands(rig, "a", Status::PendingNew, 0);
    assert!(rig.order("a").0.in_doubt, "its outcome is not known");
    rig.submit("z", 10);
    stands(rig, "z", Status::Rejected, 0);
    happens(rig, "a", VenueAction::Reconnect)?;
    assert!(!rig.order("a").0.in_doubt, "the venue has it");
    happens(rig, "a", VenueAction::Accept)?;
    stands(rig, "a", Status::New, 0);
    Some(())
}

fn reconnect_with_missed_executions(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    happens(rig, "a", VenueAction::Disconnect)?;
    happens(rig, "a", VenueAction::Fill(4))?;
    happens(rig, "a", VenueAction::Fill(2))?;
    stands(rig, "a", Status::New, 0);
    happens(rig, "a", VenueAction::Reconnect)?;
    stands(rig, "a", Status::PartiallyFilled, 6);
    assert_eq!(rig.order("a").1, 2);
    Some(())
}

fn duplicate_executions(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    happens(rig, "a", VenueAction::Fill(4))?;
    happens(rig, "a", VenueAction::FillAgain)?;
    stands(rig, "a", Status::PartiallyFilled, 4);
    assert_eq!(rig.order("a").1, 1);
    Some(())
}

fn missed_executions_over_a_reset(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    happens(rig, "a", VenueAction::Disconnect)?;
    happens(rig, "a", VenueAction::Fill(4))?;
    happens(rig, "a", VenueAction::Fill(2))?;
    happens(rig, "a", VenueAction::ReconnectWithReset)?;
    stands(rig, "a", Status::PartiallyFilled, 6);
    assert!(!rig.order("a").0.in_doubt, "the venue has reported its status");
    assert_eq!(rig.order("a").1, 1, "what was missed is one fill");
    happens(rig, "a", VenueAction::FillAgain)?;
    stands(rig, "a", Status::PartiallyFilled, 6);
    assert_eq!(rig.order("a").1, 1, "and is not counted again");
    happens(rig, "a", VenueAction::Fill(4))?;
    stands(rig, "a", Status::Filled, 10);
    Some(())
}

fn bust_of_a_filled_order(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    happens(rig, "a", VenueAction::Fill(4))?;
    happens(rig, "a", VenueAction::Fill(6))?;
    happens(rig, "a", VenueAction::Bust)?;
    stands(rig, "a", Status::PartiallyFilled, 4);
    rig.cancel("b", "a");
    happens(rig, "a", VenueAction::Grant)?;
    stands(rig, "a", Status::Canceled, 4);
    Some(())
}

fn unknown_values(rig: &mut dyn VenueRig) -> Option<()> {
    open(rig)?;
    happens(rig, "a", VenueAction::Babble)?;
    stands(rig, "a", Status::New, 0);
    happens(rig, "a", VenueAction::Fill(10))?;
    stands(rig, "a", Status::Filled, 10);
    Some(())
}

/// Opens an order of ten at the venue.
fn open(rig: &mut dyn VenueRig) -> Option<()> {
    accept(rig)
}

fn happens(rig: &mut dyn VenueRig, order: &str, act: VenueAction) -> Option<()> {
    rig.act(order, act).then_some(())
}

fn stands(rig: &dyn VenueRig, id: &str, status: Status, filled: u32) {
    let (order, _) = rig.order(id);
    assert_eq!(
        (order.status, order.cum_qty),
        (status, pitlane_tests::test_market::qty(&filled.to_string())),
        "{id}"
    );
}
