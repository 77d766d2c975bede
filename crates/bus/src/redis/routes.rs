//! A user's places as they are written in Redis: one hash per user, a field per socket.

use nexo_chat::bus::Place;
use nexo_chat::ids::{ConnectionId, LoginId, Platform, UserId};
use redis::{Value, from_redis_value};

use super::names::NodeId;

/// Writes a place unless it is there, and tells what was there before and the place's number. In
/// one act, so that of two claims at once the later one sees the earlier. Numbers are Redis' time in
/// microseconds, made to grow, so that they order places even if everything else was forgotten.
pub(crate) const CLAIM: &str = r"
local rows = redis.call('HGETALL', KEYS[1])
local order, newest = nil, 0
for i = 1, #rows, 2 do
  local number = tonumber(string.match(rows[i + 1], '%d+$')) or 0
  if rows[i] == ARGV[1] then order = number end
  if number > newest then newest = number end
end
if not order then
  local now = redis.call('TIME')
  order = math.max(now[1] * 1000000 + now[2], newest + 1)
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. string.format(' %.0f', order))
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {string.format('%.0f', order), rows}
";

/// A place and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// On which node.
    pub(crate) node: NodeId,
    /// Older places have smaller numbers.
    pub(crate) order: u64,
    /// The place.
    pub(crate) place: Place,
}

impl Row {
    fn parse(user: &UserId, field: &[u8], value: &[u8]) -> Option<Self> {
        let connection = std::str::from_utf8(field).ok()?.parse().ok()?;
        let mut words = std::str::from_utf8(value).ok()?.split(' ');
        let node = NodeId::parse(words.next()?.as_bytes())?;
        let login = LoginId::parse(words.next()?)?;
        let platform = Platform(words.next()?.parse().ok()?);
        let order = words.next()?.parse().ok()?;
        let connection = ConnectionId(connection);
        Some(Self { node, order, place: Place { user: user.clone(), connection, login, platform } })
    }
}

/// A place as a value without its number.
pub(crate) fn unnumbered(node: NodeId, place: &Place) -> String {
    format!("{node} {} {}", place.login, place.platform.0)
}

/// A place as a value.
pub(crate) fn numbered(node: NodeId, place: &Place, order: u64) -> String {
    format!("{} {order}", unnumbered(node, place))
}

/// The rows of a whole hash. What is no row is nobody's place.
pub(crate) fn rows(user: &UserId, hash: Value) -> Vec<Row> {
    let fields: Vec<(Vec<u8>, Vec<u8>)> = from_redis_value(hash).unwrap_or_default();
    fields.iter().filter_map(|(field, value)| Row::parse(user, field, value)).collect()
}

/// What [`CLAIM`] answers: the place's number and the rows before it.
pub(crate) fn claimed(user: &UserId, answer: Value) -> Option<(u64, Vec<Row>)> {
    let (order, before): (u64, Value) = from_redis_value(answer).ok()?;
    Some((order, rows(user, before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_back_and_nonsense_is_left_out() {
        let user = UserId::parse("ann").unwrap();
        let (login, platform) = (LoginId([9; 16]), Platform(-2));
        let place = Place { user: user.clone(), connection: ConnectionId(7), login, platform };
        let node = NodeId([3; 16]);
        let value = numbered(node, &place, 12);
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let mut hash = vec![bulk("7"), bulk(&value)];
        for bad in ["", "x", "3 3 3 3", &value[1..], &value[..value.len() - 2]] {
            hash.extend([bulk("8"), bulk(bad)]);
        }
        hash.extend([bulk("eight"), bulk(&value)]);
        assert_eq!(rows(&user, Value::Array(hash)), [Row { node, order: 12, place }]);
        assert_eq!(rows(&user, Value::Nil), []);
    }
}
