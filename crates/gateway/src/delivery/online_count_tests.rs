//! Counting who is online on all nodes.

use super::*;

fn people(numbers: std::ops::Range<usize>) -> Vec<UserId> {
    numbers.map(|number| UserId::parse(&format!("u{number}")).unwrap()).collect()
}

#[test]
fn people_are_counted_once_and_nearly_exactly() {
    let sketch = |numbers| Sketch::of(people(numbers).iter(), 4096);
    for count in [0, 1, 3, 10, 500, 2000] {
        let counted = sketch(0..count).people();
        assert!(counted.abs_diff(count) <= count / 20, "{count}: {counted}");
    }
    // Half of them are on both nodes.
    let both = [sketch(0..1000), sketch(500..1500)];
    let counted = Sketch::union(both.iter()).people();
    assert!(counted.abs_diff(1500) < 60, "{counted}");
    assert_eq!(Sketch(vec![255; 8]).people(), usize::MAX);
}

#[test]
fn nodes_answer_new_ones_once_and_drop_expired_sketches() {
    let rules = GroupRules { notify_online: 3, none_online: 4, ..GroupRules::default() };
    let node = |name: &str| OnlineCount::new(&rules, &name.into()).unwrap();
    let (a, b) = (node("a"), node("b"));
    let group = ConversationId::parse("sg_g").unwrap();
    let tell = |event: &Event, to: &OnlineCount, now| {
        let Event::Online { group, instance, people, asks } = event else { panic!("{event:?}") };
        to.set_remote(group, (instance, people), *asks, Millis(now))
    };
    let first = a.set_local(&group, people(0..2).iter());
    assert!(tell(&first, &a, 0).is_none(), "its own event");
    assert_eq!(a.total(&group), 0, "no other node has published any");
    assert!(tell(&first, &b, 0).is_none(), "nothing to answer");
    let second = b.set_local(&group, people(1..3).iter());
    let answer = tell(&second, &a, 0).expect("a new node is answered");
    assert!(tell(&answer, &b, 0).is_none(), "and that is all");
    assert_eq!((a.total(&group), b.total(&group)), (3, 3));
    assert!(a.ask(&group).is_none(), "nothing to ask for");
    let c = node("c");
    c.set_local(&group, people(0..1).iter());
    assert!(tell(&c.ask(&group).unwrap(), &a, 0).is_some());
    assert!(tell(&c.ask(&group).unwrap(), &a, 0).is_some(), "as often as it asks");
    assert_eq!(a.republish(Millis(EXPIRES_MS - 1)).len(), 1);
    assert_eq!(a.total(&group), 3);
    a.republish(Millis(EXPIRES_MS));
    assert_eq!(a.total(&group), 0, "a node that is gone does not count");
    let gone = b.remove(&group).expect("others are told");
    tell(&second, &a, 0);
    assert_eq!(a.total(&group), 3);
    tell(&gone, &a, 0);
    assert_eq!(a.total(&group), 0);
    assert!(b.remove(&group).is_none());
}

#[test]
fn it_is_only_for_the_strategy_that_counts() {
    let rules = GroupRules { strategy: DeliveryStrategy::Push, ..GroupRules::default() };
    assert!(OnlineCount::new(&rules, &"a".into()).is_none());
    let usual = OnlineCount::new(&GroupRules::default(), &"a".into()).unwrap();
    assert_eq!((usual.step, usual.bits), (15, 4096));
}
