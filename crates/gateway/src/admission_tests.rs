//! Who gets a place, and who has to make room.

use futures_util::FutureExt;

use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn admission(all: usize, unauthenticated: usize, per_address: usize) -> Arc<Admission> {
    Admission::new(AdmissionLimits { connections: all, unauthenticated, per_address })
}

fn is_evicted(place: &Place) -> bool {
    place.evicted().now_or_never().is_some()
}

#[test]
fn a_flood_of_one_address_pushes_out_only_itself() {
    let admission = admission(100, 5, 0);
    let patient = admission.admit(ip("1.1.1.1"), false).unwrap();
    let mut flood = Vec::new();
    for _ in 0..50 {
        flood.push(admission.admit(ip("6.6.6.6"), false).unwrap());
        flood.retain(|place| !is_evicted(place)); // closed at once, as the listener does
        assert!(flood.len() <= 4, "{}", flood.len());
    }
    assert!(!is_evicted(&patient), "it waited longer than any of them");
    let newcomer = admission.admit(ip("2.2.2.2"), false).unwrap();
    assert!(is_evicted(&flood[0]) && !is_evicted(&flood[1]), "the oldest of the flood went");
    drop((newcomer, patient, flood));
    let state = admission.state();
    assert_eq!((state.open, state.unauthenticated, state.closing), (0, 0, 0));
    assert!(state.addresses.is_empty() && state.by_weight.is_empty());
}

#[test]
fn of_addresses_with_equally_many_the_one_that_waited_longest_makes_room() {
    let admission = admission(100, 3, 0);
    // By its number the first address would come last.
    let places: Vec<Place> = ["9.9.9.9", "1.1.1.1", "5.5.5.5"]
        .map(|address| admission.admit(ip(address), false).unwrap())
        .into();
    let _fourth = admission.admit(ip("7.7.7.7"), false).unwrap();
    assert_eq!(places.iter().map(is_evicted).collect::<Vec<_>>(), [true, false, false]);
}

#[test]
fn who_signed_in_keeps_the_place() {
    let admission = admission(4, 2, 0);
    let signed_in: Vec<Place> = (0..3)
        .map(|_| {
            let place = admission.admit(ip("1.1.1.1"), false).unwrap();
            assert!(place.set_authenticated());
            place
        })
        .collect();
    let waiting = admission.admit(ip("6.6.6.6"), false).unwrap();
    let other = admission.admit(ip("7.7.7.7"), false).unwrap();
    assert!(is_evicted(&waiting), "all places are taken, so who waits makes room");
    assert!(!waiting.set_authenticated(), "too late");
    assert!(other.set_authenticated());
    drop(waiting);
    assert_eq!(admission.admit(ip("8.8.8.8"), false).map(drop), Err(NoPlace::Full));
    assert!(!signed_in.iter().any(is_evicted));
    drop(other);
    assert!(admission.admit(ip("8.8.8.8"), false).is_ok());
}

#[test]
fn what_is_still_closing_bounds_how_many_are_pushed_out() {
    let admission = admission(100, 1, 0);
    let mut slow = vec![admission.admit(ip("6.6.6.6"), false).unwrap()];
    for _ in 0..CLOSING_MAX {
        slow.push(admission.admit(ip("6.6.6.6"), false).unwrap());
    }
    assert_eq!(admission.admit(ip("1.1.1.1"), false).map(drop), Err(NoPlace::Full));
    slow.remove(0);
    assert!(admission.admit(ip("1.1.1.1"), false).is_ok());
}

#[test]
fn an_address_has_so_many_and_others_have_theirs() {
    let admission = admission(100, 100, 2);
    let places = [(); 2].map(|()| admission.admit(ip("1.1.1.1"), false).unwrap());
    assert!(places[0].set_authenticated());
    assert_eq!(admission.admit(ip("1.1.1.1"), false).map(drop), Err(NoPlace::Address));
    let other = admission.admit(ip("2.2.2.2"), false).unwrap();
    drop(places);
    assert!(admission.admit(ip("1.1.1.1"), false).is_ok());
    drop(other);
}

#[test]
fn behind_a_proxy_sockets_count_by_their_client() {
    let admission = admission(100, 100, 2);
    let proxy = ip("10.0.0.1");
    let connections: Vec<Place> = (0..5).map(|_| admission.admit(proxy, true).unwrap()).collect();
    let clients = ["1.1.1.1", "1.1.1.1", "1.1.1.1", "2.2.2.2", "1.1.1.1"].map(ip);
    let counted: Vec<bool> = connections
        .iter()
        .zip(clients)
        .map(|(place, client)| {
            place.set_client(client);
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
        let place = admission.admit(proxy, true).unwrap();
        place.set_client(ip(client));
        place
    };
    let patient = serve("1.1.1.1");
    let flood: Vec<Place> = (0..3).map(|_| serve("6.6.6.6")).collect();
    let newcomer = serve("2.2.2.2");
    assert!(is_evicted(&flood[0]) && !is_evicted(&patient) && !is_evicted(&newcomer));
    // The next request on a connection that was signed in is somebody else's.
    assert!(newcomer.set_authenticated());
    newcomer.set_client(ip("6.6.6.6"));
    assert!(newcomer.state.fields().waiting.is_some());
}
