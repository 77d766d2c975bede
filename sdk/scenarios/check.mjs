// Compares what a client has with what the server has: the same messages, in order, once, without a gap.

/** The differences between a report and the server; empty if there are none. */
export async function differences(server, person, report) {
  const found = [];
  const heads = await server.heads(person);
  const held = new Map(report.conversations.map((one) => [one.id, one]));
  for (const head of heads) {
    const ours = held.get(head.conversation_id);
    if (ours === undefined) found.push(`${person} knows nothing of ${head.conversation_id}`);
    else found.push(...compare(person, ours, head, await server.history(person, head)));
  }
  for (const { id, unsent } of report.conversations) {
    if (unsent > 0) found.push(`${person}: ${unsent} unsent in ${id}`);
  }
  if (report.twice > 0) found.push(`${person} got ${report.twice} messages twice`);
  if (report.disordered > 0) found.push(`${person} got ${report.disordered} messages out of order`);
  return found;
}

function compare(person, ours, head, stored) {
  const where = `${person} in ${ours.id}`;
  const found = [];
  if (ours.messages.length !== stored.length) {
    found.push(`${where}: ${ours.messages.length} messages instead of ${stored.length}`);
  }
  for (const [index, theirs] of stored.entries()) {
    const one = ours.messages[index];
    if (theirs.seq !== head.min_seq + index) found.push(`the server has a gap before ${theirs.seq}`);
    const difference = one === undefined ? "missing" : unlike(one, theirs, person);
    if (difference) found.push(`${where}: number ${theirs.seq} differs: ${difference}`);
    if (found.length > 5) break;
  }
  if (ours.unread !== head.unread_count) {
    found.push(`${where}: ${ours.unread} unread instead of ${head.unread_count}`);
  }
  return found;
}

function unlike(one, theirs, person) {
  const isRevoked = theirs.recall_at !== undefined;
  const body = Object.values(theirs.content)[0] ?? "";
  if (one.seq !== theirs.seq) return `its place is ${one.seq}`;
  if (one.id !== theirs.server_msg_id) return `its id is ${one.id}`;
  if (one.from !== theirs.sender_id) return `it is from ${one.from}`;
  if (one.isRecalled !== isRevoked) return `isRecalled is ${one.isRecalled}`;
  if (one.body !== (isRevoked ? "" : body)) return `it says ${one.body}`;
  const states = theirs.sender_id === person ? ["saved", "delivered", "read"] : ["received"];
  return states.includes(one.state) ? undefined : `its state is ${one.state}`;
}

/** Whether the messages of each sender are in the order they were sent. Bodies end in `-number`. */
export function isInOrder(messages) {
  const last = new Map();
  for (const { from, body } of messages) {
    const number = Number(body.split("-").at(-1));
    if (number <= (last.get(from) ?? -1)) return false;
    last.set(from, number);
  }
  return true;
}
