//! Who gives way when another device comes?

use crate::bus::Place;
use crate::reason::Reason;
use crate::rules::{Rules, SessionPolicy};

/// The places among `others` (oldest first) that have to go because `newcomer` came, or a refusal of the newcomer.
pub fn who_gives_way<'a>(
    rules: &Rules,
    newcomer: &Place,
    others: &'a [Place],
) -> Result<Vec<&'a Place>, Reason> {
    let (mut going, staying): (Vec<&Place>, Vec<&Place>) =
        others.iter().partition(|other| excludes(rules.session_policy, newcomer, other));
    if staying.len() >= rules.connections_max {
        // A device that comes again and again leaves dead sockets behind: its oldest goes.
        let oldest = staying.into_iter().find(|other| other.login == newcomer.login);
        going.push(oldest.ok_or(Reason::TooManyConnections)?);
    }
    Ok(going)
}

/// Whether two places of one user cannot be at once. A sign-in is a device: the tabs of a browser
/// share one, and do not put each other out.
pub fn excludes(policy: SessionPolicy, newcomer: &Place, other: &Place) -> bool {
    if newcomer.login == other.login {
        return false;
    }
    match policy {
        SessionPolicy::Multi => false,
        SessionPolicy::PerPlatform => newcomer.platform == other.platform,
        SessionPolicy::Single => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ConnectionId, LoginId, Platform, UserId};

    fn place(connection: u64, platform: i32) -> Place {
        Place {
            user: UserId::parse("alice").unwrap(),
            connection: ConnectionId(connection),
            login: LoginId([u8::try_from(connection).unwrap(); 16]),
            platform: Platform(platform),
        }
    }

    fn check(policy: SessionPolicy, others: &[Place], expect: Result<&[u64], Reason>) {
        let rules = Rules { session_policy: policy, connections_max: 3, ..Rules::default() };
        let going = who_gives_way(&rules, &place(9, 1), others)
            .map(|going| going.iter().map(|place| place.connection.0).collect::<Vec<_>>());
        assert_eq!(going.as_deref(), expect.as_ref().map(|ids| &ids[..]), "{policy:?}");
    }

    #[test]
    fn each_policy_names_its_own() {
        let two = [place(1, 1), place(2, 5)];
        check(SessionPolicy::Multi, &two, Ok(&[]));
        check(SessionPolicy::PerPlatform, &two, Ok(&[1]));
        check(SessionPolicy::Single, &two, Ok(&[1, 2]));
    }

    #[test]
    fn the_tabs_of_a_browser_do_not_put_each_other_out() {
        let mine = Place { login: LoginId([9; 16]), ..place(1, 1) };
        check(SessionPolicy::PerPlatform, &[mine.clone(), place(2, 1)], Ok(&[2]));
        check(SessionPolicy::Single, &[mine, place(2, 5)], Ok(&[2]));
    }

    #[test]
    fn at_the_most_the_oldest_socket_of_the_same_sign_in_goes() {
        let mine = |connection| Place { login: LoginId([9; 16]), ..place(connection, 5) };
        check(SessionPolicy::Multi, &[place(1, 5), mine(2), mine(3)], Ok(&[2]));
    }

    #[test]
    fn there_is_a_most() {
        let three = [place(1, 5), place(2, 5), place(3, 5)];
        check(SessionPolicy::Multi, &three, Err(Reason::TooManyConnections));
        check(SessionPolicy::PerPlatform, &three, Err(Reason::TooManyConnections));
        check(SessionPolicy::Single, &three, Ok(&[1, 2, 3]));
    }
}
