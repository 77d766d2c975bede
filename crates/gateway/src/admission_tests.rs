//! Who gets a place, and who has to make room.

use futures_util::FutureExt;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn admission(all: usize, unauthenticated: usize, per_address: usize) -> Arc<Admission> {
    let patience_ms = 1000;
    Admission::new(AdmissionLimits { connections: all, unauthenticated, per_address, patience_ms })
}

/// A connection of a client without a proxy.
fn admit(admission: &Arc<Admission>, from: &str, at: u64) -> Result<Place, NoPlace> {
    admission.admit(ip(from), false, Millis(at))
}

fn is_evicted(place: &Place) -> bool {
    place.evicted().now_or_never().is_some()
}

#[test]
fn a_flood_of_one_address_pushes_out_only_itself() {
    let admission = admission(100, 5, 0);
    let patient = admit(&admission, "1.1.1.1", 0).unwrap();
    let mut flood = Vec::new();
    for at in 0..50 {
        flood.extend(admit(&admission, "6.6.6.6", 100 * at));
        flood.retain(|place| !is_evicted(place)); // closed at once, as the listener does
        assert!(flood.len() <= 4, "{}", flood.len());
    }
    assert!(!is_evicted(&patient), "it waited longer than any of them");
    let newcomer = admit(&admission, "2.2.2.2", 5000).unwrap();
    assert!(is_evicted(&flood[0]) && !is_evicted(&flood[1]), "the oldest of the flood went");
    drop((newcomer, patient, flood));
    let state = admission.state();
    assert_eq!((state.open, state.unauthenticated, state.closing), (0, 0, 0));
    assert!(state.addresses.is_empty() && state.by_weight.is_empty());
}

#[test]
fn among_equals_the_one_that_waited_longest_makes_room_after_its_time() {
    let admission = admission(100, 3, 0);
    // By its number the first address would come last.
    let places: Vec<Place> =
        ["9.9.9.9", "1.1.1.1", "5.5.5.5"].map(|from| admit(&admission, from, 0).unwrap()).into();
    let evicted = || places.iter().map(is_evicted).collect::<Vec<_>>();
    assert_eq!(admit(&admission, "7.7.7.7", 999).map(drop), Err(NoPlace::Full));
    assert_eq!(evicted(), [false; 3], "they are about to sign in");
    let _fourth = admit(&admission, "7.7.7.7", 1000).unwrap();
    assert_eq!(evicted(), [true, false, false]);
}

#[test]
fn who_signed_in_keeps_the_place() {
    let admission = admission(4, 2, 0);
    let signed_in: Vec<Place> = (0..3)
        .map(|_| {
            let place = admit(&admission, "1.1.1.1", 0).unwrap();
            assert!(place.set_authenticated());
            place
        })
        .collect();
    let waiting = admit(&admission, "6.6.6.6", 0).unwrap();
    let other = admit(&admission, "7.7.7.7", 1000).unwrap();
    assert!(is_evicted(&waiting), "all places are taken, so who waits makes room");
    assert!(!waiting.set_authenticated(), "too late");
    assert!(other.set_authenticated());
    drop(waiting);
    assert_eq!(admit(&admission, "8.8.8.8", 0).map(drop), Err(NoPlace::Full));
    assert!(!signed_in.iter().any(is_evicted));
    drop(other);
    assert!(admit(&admission, "8.8.8.8", 0).is_ok());
}

#[test]
fn what_is_still_closing_bounds_how_many_are_pushed_out() {
    let admission = admission(100, 1, 0);
    let mut slow = vec![admit(&admission, "6.6.6.6", 0).unwrap()];
    for number in 1..=CLOSING_MAX {
        slow.push(admit(&admission, "6.6.6.6", 1000 * number as u64).unwrap());
    }
    assert_eq!(admit(&admission, "1.1.1.1", 60_000).map(drop), Err(NoPlace::Full));
    slow.remove(0);
    assert!(admit(&admission, "1.1.1.1", 60_000).is_ok());
}

#[test]
fn an_address_has_so_many_and_others_have_theirs() {
    let admission = admission(100, 100, 2);
    let places = [(); 2].map(|()| admit(&admission, "1.1.1.1", 0).unwrap());
    assert!(places[0].set_authenticated());
    assert_eq!(admit(&admission, "1.1.1.1", 0).map(drop), Err(NoPlace::Address));
    let other = admit(&admission, "2.2.2.2", 0).unwrap();
    drop(places);
    assert!(admit(&admission, "1.1.1.1", 0).is_ok());
    drop(other);
}

#[test]
fn behind_a_proxy_sockets_count_by_their_client() {
    let admission = admission(100, 100, 2);
    let proxy = ip("10.0.0.1");
    let connections: Vec<Place> =
        (0..5).map(|_| admission.admit(proxy, true, Millis(0)).unwrap()).collect();
    let clients = ["1.1.1.1", "1.1.1.1", "1.1.1.1", "2.2.2.2", "1.1.1.1"].map(ip);
    let counted: Vec<bool> = connections
        .iter()
        .zip(clients)
        .map(|(place, client)| {
            place.set_client(client, Millis(0));
            place.count_socket(client).is_ok()
        })
        .collect();
    assert_eq!(counted, [true, true, false, true, false]);
    drop(connections);
    assert!(admission.state().addresses.is_empty());
}

#[test]
fn behind_a_proxy_a_flood_pushes_out_its_own_clients() {
    let admission = admission(100, 4, 0);
    let proxy = ip("10.0.0.1");
    let serve = |client: &str| {
        let place = admission.admit(proxy, true, Millis(0)).unwrap();
        place.set_client(ip(client), Millis(0));
        place
    };
    let patient = serve("1.1.1.1");
    let flood: Vec<Place> = (0..3).map(|_| serve("6.6.6.6")).collect();
    let newcomer = serve("2.2.2.2");
    assert!(is_evicted(&flood[0]) && !is_evicted(&patient) && !is_evicted(&newcomer));
    // The next request on a connection that was signed in is somebody else's.
    assert!(newcomer.set_authenticated());
    newcomer.set_client(ip("6.6.6.6"), Millis(0));
    assert!(newcomer.state.fields().waiting.is_some());
}
