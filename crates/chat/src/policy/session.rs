//! Which sessions close when another device connects?

use crate::bus::Registration;
use crate::reason::Reason;
use crate::rules::{Rules, SessionPolicy};

/// The sockets among `others` (oldest first) to close because `newcomer` connects, or a refusal of the newcomer.
pub fn connections_to_close<'a>(
    rules: &Rules,
    newcomer: &Registration,
    others: &'a [Registration],
) -> Result<Vec<&'a Registration>, Reason> {
    let (mut closing, remaining): (Vec<&Registration>, Vec<&Registration>) =
        others.iter().partition(|other| excludes(rules.session_policy, newcomer, other));
    if remaining.len() >= rules.connections_max {
        // A device that reconnects repeatedly leaves dead sockets behind: close its oldest one.
        let oldest = remaining.into_iter().find(|other| other.login == newcomer.login);
        closing.push(oldest.ok_or(Reason::TooManyConnections)?);
    }
    Ok(closing)
}

/// Whether two sockets of one user exclude each other. A sign-in is a device: the tabs of a browser share
/// one, and do not exclude each other.
pub fn excludes(policy: SessionPolicy, newcomer: &Registration, other: &Registration) -> bool {
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

    fn socket(connection: u64, platform: i32) -> Registration {
        Registration {
            user: UserId::parse("alice").unwrap(),
            connection: ConnectionId(connection),
            login: LoginId([u8::try_from(connection).unwrap(); 16]),
            platform: Platform(platform),
        }
    }

    fn check(policy: SessionPolicy, others: &[Registration], expect: Result<&[u64], Reason>) {
        let rules = Rules { session_policy: policy, connections_max: 3, ..Rules::default() };
        let closing = connections_to_close(&rules, &socket(9, 1), others)
            .map(|closing| closing.iter().map(|socket| socket.connection.0).collect::<Vec<_>>());
        assert_eq!(closing.as_deref(), expect.as_ref().map(|ids| &ids[..]), "{policy:?}");
    }

    #[test]
    fn each_policy_names_its_own() {
        let two = [socket(1, 1), socket(2, 5)];
        check(SessionPolicy::Multi, &two, Ok(&[]));
        check(SessionPolicy::PerPlatform, &two, Ok(&[1]));
        check(SessionPolicy::Single, &two, Ok(&[1, 2]));
    }

    #[test]
    fn the_tabs_of_a_browser_do_not_put_each_other_out() {
        let mine = Registration { login: LoginId([9; 16]), ..socket(1, 1) };
        check(SessionPolicy::PerPlatform, &[mine.clone(), socket(2, 1)], Ok(&[2]));
        check(SessionPolicy::Single, &[mine, socket(2, 5)], Ok(&[2]));
    }

    #[test]
    fn at_the_most_the_oldest_socket_of_the_same_sign_in_goes() {
        let mine = |connection| Registration { login: LoginId([9; 16]), ..socket(connection, 5) };
        check(SessionPolicy::Multi, &[socket(1, 5), mine(2), mine(3)], Ok(&[2]));
    }

    #[test]
    fn there_is_a_most() {
        let three = [socket(1, 5), socket(2, 5), socket(3, 5)];
        check(SessionPolicy::Multi, &three, Err(Reason::TooManyConnections));
        check(SessionPolicy::PerPlatform, &three, Err(Reason::TooManyConnections));
        check(SessionPolicy::Single, &three, Ok(&[1, 2, 3]));
    }
}
