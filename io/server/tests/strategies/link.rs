//! The connection to the broker at its bounds: a sender waits for room, and of messages that arrive
//! too fast the newest are dropped.

use std::future::Future;

use futures_util::{FutureExt, StreamExt};
use pitlane_cluster::nats::link;
use pitlane_config::{Config, NatsConfig};
use pitlane_testkit::nats_server::NatsBroker;
use pitlane_testkit::patience::PATIENCE;
use pitlane_testkit::service::folder;
use tokio::task::unconstrained;

/// As in `io/cluster/src/nats/link.rs`.
const MESSAGES_MAX: usize = 1_024;
const HEARD_MAX: usize = 16_384;

fn nats(url: String) -> NatsConfig {
    NatsConfig { url, ..Config::default().nats }
}

fn run<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bounded = async { tokio::time::timeout(PATIENCE, what).await.expect("it comes to an end") };
    runtime.block_on(bounded)
}

#[test]
fn a_sender_faster_than_its_link_waits_until_the_broker_is_reachable() {
    let place = folder("link-out");
    let mut broker = NatsBroker::start(&place);
    run(async {
        broker.kill();
        let (client, _) = link::open(&nats(broker.url()), "a", "inbox.a".to_string()).await.unwrap();
        // This takes the first place.
        let mut messages = client.subscribe("a").await.unwrap();
        for n in 1..MESSAGES_MAX {
            client.publish("a", n.to_string().into()).await.unwrap();
        }
        let mut one_more = Box::pin(unconstrained(client.publish("a", "one more".into())));
        assert!(one_more.as_mut().now_or_never().is_none(), "there is no room");
        // A waiting sender continues when there is a broker again, and nothing is lost.
        broker.restart();
        one_more.await.unwrap();
        for n in 1..MESSAGES_MAX {
            assert_eq!(messages.next().await.unwrap().payload, n.to_string());
        }
        assert_eq!(messages.next().await.unwrap().payload, "one more");
    });
}

#[test]
fn of_messages_that_come_too_fast_the_newest_are_dropped_and_later_ones_are_received() {
    let place = folder("link-in");
    let broker = NatsBroker::start(&place);
    run(async {
        let (client, _) = link::open(&nats(broker.url()), "a", "inbox.a".to_string()).await.unwrap();
        let mut messages = client.subscribe("a").await.unwrap();
        let mut last = client.subscribe("last").await.unwrap();
        client.flush().await.unwrap();
        let other = async_nats::connect(broker.url()).await.unwrap();
        for n in 0..HEARD_MAX + 100 {
            other.publish("a", n.to_string().into()).await.unwrap();
        }
        other.publish("last", "".into()).await.unwrap();
        // It comes after all the others, on the same connection.
        last.next().await.unwrap();
        for n in 0..HEARD_MAX {
            assert_eq!(messages.next().await.unwrap().payload, n.to_string());
        }
        assert!(unconstrained(messages.next()).now_or_never().is_none(), "the rest was dropped");
        other.publish("a", "later".into()).await.unwrap();
        assert_eq!(messages.next().await.unwrap().payload, "later");
    });
}
