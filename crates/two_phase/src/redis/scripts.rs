//! Lua scripts, which Redis runs atomically. Each uses the keys of one shard.
//!
//! A Redis without memory left refuses a script whose first write needs more. Scripts that empty
//! the log therefore begin with a write that needs none; only [`PUT`] is meant to be refused.

/// Adds messages to the end of the log, unless they are in it or were saved. A message noted as
/// waiting counts only if its entry is in the stream.
/// Keys: log, open. Arguments: the most messages that may wait, then for each message: id,
/// fingerprint (16 bytes), bytes, and the id of the message that must come before it, or nothing.
/// Returns how many messages wait, and a letter for each message: **n**ew, **a**gain, **s**aved,
/// **c**onflict, **f**ull, or **l**ost: the message before it is neither waiting nor saved.
pub(super) const PUT: &str = "
local function waits(known)
  local entry = string.sub(known, 17)
  return #redis.call('XRANGE', KEYS[1], entry, entry) == 1
end
local room = tonumber(ARGV[1]) - redis.call('XLEN', KEYS[1])
local outcomes = {}
for i = 2, #ARGV, 4 do
  local known = redis.call('HGET', KEYS[2], ARGV[i])
  local before = ARGV[i + 3] ~= '' and redis.call('HGET', KEYS[2], ARGV[i + 3])
  if known == '+' then outcomes[#outcomes + 1] = 's'
  elseif known and waits(known) then
    outcomes[#outcomes + 1] = string.sub(known, 1, 16) == ARGV[i + 1] and 'a' or 'c'
  elseif room <= 0 then outcomes[#outcomes + 1] = 'f'
  elseif ARGV[i + 3] ~= '' and before ~= '+' and not (before and waits(before)) then
    outcomes[#outcomes + 1] = 'l'
  else
    local entry = redis.call('XADD', KEYS[1], '*', 'm', ARGV[i + 2])
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1] .. entry)
    room = room - 1
    outcomes[#outcomes + 1] = 'n'
  end
end
return {redis.call('XLEN', KEYS[1]), table.concat(outcomes)}";

/// Returns whether a message waits.
/// Keys: log, open. Arguments: id.
pub(super) const IS_WAITING: &str = "
local known = redis.call('HGET', KEYS[2], ARGV[1])
if not known or known == '+' then return 0 end
local entry = string.sub(known, 17)
return #redis.call('XRANGE', KEYS[1], entry, entry)";

/// Acquires the lease of a shard, if no other node has it, and creates the consumer groups, which
/// read from the start of the stream.
/// Keys: log, owner. Arguments: node, milliseconds. Returns whether this node has the lease.
pub(super) const ACQUIRE: &str = "
local owner = redis.call('GET', KEYS[2])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[2])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
for _, group in ipairs({'save', 'deliver'}) do
  local made = redis.pcall('XGROUP', 'CREATE', KEYS[1], group, '0', 'MKSTREAM')
  if type(made) == 'table' and made.err and not string.find(made.err, 'BUSYGROUP') then
    return redis.error_reply(made.err)
  end
end
return 1";

/// Renews the lease of a shard.
/// Keys: log, owner. Arguments: node, milliseconds. Returns how many entries wait, and how many of
/// them were read to be saved and to be previewed.
pub(super) const RENEW: &str = "
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return redis.error_reply('LOST another node has it') end
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return {redis.call('XLEN', KEYS[1]), redis.call('XPENDING', KEYS[1], 'save')[1],
  redis.call('XPENDING', KEYS[1], 'deliver')[1]}";

/// Claims entries that earlier owners read and did not finish. Once none are left, removes the
/// earlier owners from the group.
/// Keys: log, owner. Arguments: node, group, cursor, count. Returns the next cursor and the
/// entries.
pub(super) const CLAIM_UNFINISHED: &str = "
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return redis.error_reply('LOST another node has it') end
local claimed = redis.call('XAUTOCLAIM', KEYS[1], ARGV[2], ARGV[1], 0, ARGV[3], 'COUNT', ARGV[4])
if claimed[1] == '0-0' then
  for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[2])) do
    if consumer[2] ~= ARGV[1] then
      redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[2], consumer[2])
    end
  end
end
return {claimed[1], claimed[2]}";

/// Reads entries that the group has not read. If the last answer was lost, its entries come again:
/// first those that this node read after the last entry it received.
/// Keys: log, owner. Arguments: node, group, count, last entry. Returns the entries, or the id of
/// the last entry of the stream.
pub(super) const READ: &str = "
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return redis.error_reply('LOST another node has it') end
local function read(from)
  local read = redis.call('XREADGROUP', 'GROUP', ARGV[2], ARGV[1], 'COUNT', ARGV[3], 'STREAMS', KEYS[1], from)
  return read and read[1][2] or {}
end
local entries = {}
for _, entry in ipairs(read(ARGV[4])) do
  if entry[2] then entries[#entries + 1] = entry
  else redis.call('XACK', KEYS[1], ARGV[2], entry[1]) end
end
if #entries == 0 then entries = read('>') end
if #entries > 0 then return entries end
local info = redis.call('XINFO', 'STREAM', KEYS[1])
for i = 1, #info, 2 do
  if info[i] == 'last-generated-id' then return info[i + 1] end
end";

/// Finishes entries, and remembers the last ones that were saved.
/// Keys: log, open, saved. Arguments: how many to remember, then for each: entry, id, `+` (saved)
/// or `-`.
pub(super) const FINISH: &str = "
local entries = {}
for i = 2, #ARGV, 3 do entries[#entries + 1] = ARGV[i] end
redis.pcall('XACK', KEYS[1], 'save', unpack(entries))
redis.pcall('XACK', KEYS[1], 'deliver', unpack(entries))
redis.call('XDEL', KEYS[1], unpack(entries))
for i = 2, #ARGV, 3 do
  if ARGV[i + 2] == '+' then
    redis.call('HSET', KEYS[2], ARGV[i + 1], '+')
    redis.call('RPUSH', KEYS[3], ARGV[i + 1])
  else
    redis.call('HDEL', KEYS[2], ARGV[i + 1])
  end
end
while redis.call('LLEN', KEYS[3]) > tonumber(ARGV[1]) do
  redis.call('HDEL', KEYS[2], redis.call('LPOP', KEYS[3]))
end
return 1";

/// Moves an entry to the dead letters.
/// Keys: log, open, dead. Arguments: entry, bytes, why, node, about how many dead letters to keep,
/// and the message id if it is known.
pub(super) const DEAD_LETTER: &str = "
redis.pcall('XACK', KEYS[1], 'save', ARGV[1])
redis.pcall('XACK', KEYS[1], 'deliver', ARGV[1])
redis.call('XDEL', KEYS[1], ARGV[1])
redis.call('XADD', KEYS[3], 'MAXLEN', '~', ARGV[5], '*', 'm', ARGV[2], 'why', ARGV[3], 'node', ARGV[4])
if ARGV[6] ~= '' then redis.call('HDEL', KEYS[2], ARGV[6]) end
return 1";

/// Releases the lease of a shard.
/// Keys: owner. Arguments: node.
pub(super) const RELEASE: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0";
