//! A user's registrations as they are stored in Redis: one hash per user, a field per socket.

use nexo_chat::bus::Registration;
use nexo_chat::ids::{ConnectionId, LoginId, Platform, UserId};
use nexo_redis_link::NodeId;
use redis::{Value, from_redis_value};

/// Writes a registration unless it is there, and returns its order number and the rows before it.
/// One atomic script, so that of two registrations at once the later one sees the earlier. The
/// order number is the time of Redis in microseconds, raised above the newest row, so that it
/// orders registrations even after Redis lost its data.
pub(crate) const REGISTER: &str = r"
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

/// A registration and the node that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RegistrationRow {
    pub(crate) node: NodeId,
    /// Older registrations have smaller numbers.
    pub(crate) order: u64,
    pub(crate) registration: Registration,
}

impl RegistrationRow {
    fn parse(user: &UserId, field: &[u8], value: &[u8]) -> Option<Self> {
        let connection = std::str::from_utf8(field).ok()?.parse().ok()?;
        let mut parts = std::str::from_utf8(value).ok()?.split(' ');
        let node = NodeId::parse(parts.next()?.as_bytes())?;
        let login = LoginId::parse(parts.next()?)?;
        let platform = Platform(parts.next()?.parse().ok()?);
        let order = parts.next()?.parse().ok()?;
        let connection = ConnectionId(connection);
        Some(Self {
            node,
            order,
            registration: Registration { user: user.clone(), connection, login, platform },
        })
    }
}

/// The value of a hash field without the order number, which [`REGISTER`] appends.
pub(crate) fn value_without_order(node: NodeId, registration: &Registration) -> String {
    format!("{node} {} {}", registration.login, registration.platform.0)
}

/// The whole value of a hash field.
pub(crate) fn value(node: NodeId, registration: &Registration, order: u64) -> String {
    format!("{} {order}", value_without_order(node, registration))
}

/// Reads all rows of a hash. A field that cannot be parsed is left out.
pub(crate) fn parse_rows(user: &UserId, hash: Value) -> Vec<RegistrationRow> {
    let fields: Vec<(Vec<u8>, Vec<u8>)> = from_redis_value(hash).unwrap_or_default();
    fields.iter().filter_map(|(field, value)| RegistrationRow::parse(user, field, value)).collect()
}

/// Reads the reply of [`REGISTER`]: the order number and the rows before it.
pub(crate) fn parse_register_reply(
    user: &UserId,
    answer: Value,
) -> Option<(u64, Vec<RegistrationRow>)> {
    let (order, before): (u64, Value) = from_redis_value(answer).ok()?;
    Some((order, parse_rows(user, before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_back_and_nonsense_is_left_out() {
        let user = UserId::parse("ann").unwrap();
        let (login, platform) = (LoginId([9; 16]), Platform(-2));
        let registration =
            Registration { user: user.clone(), connection: ConnectionId(7), login, platform };
        let node = NodeId([3; 16]);
        let value = value(node, &registration, 12);
        let bulk = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let mut hash = vec![bulk("7"), bulk(&value)];
        for bad in ["", "x", "3 3 3 3", &value[1..], &value[..value.len() - 2]] {
            hash.extend([bulk("8"), bulk(bad)]);
        }
        hash.extend([bulk("eight"), bulk(&value)]);
        assert_eq!(
            parse_rows(&user, Value::Array(hash)),
            [RegistrationRow { node, order: 12, registration }]
        );
        assert_eq!(parse_rows(&user, Value::Nil), []);
    }
}
