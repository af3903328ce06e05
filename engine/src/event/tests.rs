use super::*;

#[test]
fn equal_numbers_of_two_shards_or_servers_give_different_exec_ids() {
    let body = EventKind::TradingDay { day: Day(1) };
    let event = Event { seq: 7, at: Timestamp(1), body };
    let mut ids: Vec<Uuid> = [1, 2]
        .into_iter()
        .flat_map(|instance| [0, 1, 2].map(|shard| event.exec_id(instance, ShardId(shard))))
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 6);
}
