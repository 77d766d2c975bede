import type { Conversation } from "./conversation.js";
import type { Emitter } from "./events.js";
import type { AckFrame, ChatFrame, ServerFrame } from "./frames.js";
import type { Inbox } from "./inbox.js";
import { changeFromFrame, fromFrame } from "./messages.js";
import type { Outbox } from "./outbox.js";
import { Refused } from "./refusal.js";
import type { Sync } from "./sync.js";
import { conversationOf, type Events, type Message } from "./types.js";
import type { Typing } from "./typing.js";

/** Understands what the server says and passes it to whom it concerns. */
export class Ear {
  constructor(
    private readonly me: string,
    private readonly events: Emitter<Events>,
    private readonly inbox: Inbox,
    private readonly outbox: Outbox,
    private readonly sync: Sync,
    private readonly typing: Typing,
  ) {}

  hear(frame: ServerFrame): void {
    switch (frame.type) {
      case "SINGLE_CHAT":
      case "GROUP_CHAT":
        return this.hearChat(frame);
      case "ACK":
        return this.hearAck(frame);
      case "MESSAGE_REVOKED":
      case "GROUP_CHANGED":
        return this.inbox.takeChange(changeFromFrame(frame));
      case "ERROR":
        return this.hearError(frame);
      case "GROUP_NOTIFY":
        return this.inbox.expect(this.inbox.open(frame.conversationId), Number(frame.msgSeq));
      case "RESEND_DONE":
        return this.sync.pageDone(frame.hasMore);
      case "TYPING": {
        const target = frame.groupId === undefined ? { to: frame.from } : { groupId: frame.groupId };
        return this.typing.hear(conversationOf(this.me, target), frame.from);
      }
      case "CONVERSATION_SETTINGS": {
        const conversation = this.inbox.open(frame.conversationId);
        if (conversation.receive === "blocked") this.sync.askHeads(); // what was said meanwhile
        conversation.receive = frame.receive;
        conversation.pinned = frame.pinned;
        conversation.hiddenSeq = frame.hiddenSeq === undefined ? undefined : Number(frame.hiddenSeq);
        return this.inbox.touch(conversation);
      }
      case "USER_UPDATED":
        return this.hearPerson(frame);
      case "GROUP_JOIN_REQUEST": {
        const { groupId, from: userId, serverMsgId: requestId, body: message } = frame;
        return this.events.emit("joinRequest", { groupId, userId, requestId, message });
      }
      case "GROUP_JOIN_DECISION": {
        const { groupId, from: by, serverMsgId: requestId } = frame;
        const accepted = frame.body === "ACCEPTED";
        return this.events.emit("joinDecision", { groupId, by, requestId, accepted });
      }
    }
  }

  /** A conversation with one person is called as they are. */
  private hearPerson(frame: ServerFrame & { type: "USER_UPDATED" }): void {
    const { userId, nickname, avatar } = frame;
    const conversation = this.inbox.conversations.get(conversationOf(this.me, { to: userId }));
    if (conversation !== undefined && userId !== this.me) {
      conversation.name = nickname;
      conversation.avatar = avatar;
      this.inbox.touch(conversation);
    }
    this.events.emit("person", { userId, nickname, avatar });
  }

  private hearChat(frame: ChatFrame): void {
    const message = fromFrame(frame, this.me);
    this.typing.stop(message.conversationId, message.from);
    if (message.state !== "preview") return this.inbox.take(message);
    const conversation = this.inbox.open(message.conversationId);
    const isKnown =
      conversation.previews.has(message.serverMsgId) ||
      conversation.held.find(message.serverMsgId) !== undefined ||
      (message.mine && conversation.outgoing.has(message.clientMsgId)) ||
      conversation.arrived.early().some((early) => early.serverMsgId === message.serverMsgId);
    if (isKnown) return;
    conversation.previews.set(message.serverMsgId, message);
    this.events.emit("message", message);
    this.inbox.touch(conversation);
  }

  private hearAck(frame: AckFrame): void {
    const conversation = this.inbox.open(frame.conversationId);
    switch (frame.ackType) {
      case "accepted":
        return this.hearAccepted(conversation, frame);
      case "saved":
        return this.hearSaved(conversation, frame);
      case "dropped":
        return this.hearDropped(conversation, frame);
      case "revoked":
        return this.inbox.recall(conversation, frame.serverMsgId);
      case "delivered":
      case "read":
        return this.hearReceipt(conversation, frame, frame.ackType);
    }
  }

  private hearAccepted(conversation: Conversation, frame: AckFrame): void {
    const { clientMsgId = "", serverMsgId } = frame;
    const message = conversation.outgoing.get(clientMsgId);
    if (this.outbox.accepted(conversation.id, clientMsgId) === undefined) return;
    if (message === undefined || message.state !== "sending") return;
    const body = frame.body ?? message.body; // words of the operator's list are replaced
    const accepted: Message = { ...message, serverMsgId, body, state: "accepted" };
    conversation.outgoing.set(clientMsgId, accepted);
    this.events.emit("update", accepted);
    this.inbox.touch(conversation);
  }

  private hearSaved(conversation: Conversation, frame: AckFrame): void {
    const { clientMsgId = "", serverMsgId } = frame;
    const place = { serverMsgId, seq: Number(frame.msgSeq), at: frame.ts ?? 0 };
    const isOurs = frame.from === undefined || frame.from === this.me;
    const waiting = isOurs ? conversation.outgoing.get(clientMsgId) : undefined;
    const preview = conversation.previews.get(serverMsgId);
    if (waiting !== undefined) {
      this.outbox.answered(conversation.id, clientMsgId);
      this.inbox.take({ ...waiting, ...place, body: frame.body ?? waiting.body, state: "saved" });
    } else if (preview !== undefined) {
      this.inbox.take({ ...preview, ...place, state: preview.mine ? "saved" : "received" });
    } else {
      this.inbox.expect(conversation, place.seq);
    }
  }

  private hearDropped(conversation: Conversation, frame: AckFrame): void {
    const preview = conversation.previews.get(frame.serverMsgId);
    if (preview !== undefined) this.inbox.drop(conversation, preview);
  }

  private hearReceipt(
    conversation: Conversation,
    frame: AckFrame,
    kind: "delivered" | "read",
  ): void {
    const [userId, seq] = [frame.from ?? "", Number(frame.msgSeq)];
    if (userId !== this.me) {
      this.inbox.receipt(conversation, kind, seq, userId);
      this.events.emit("receipt", { conversationId: conversation.id, userId, kind, seq });
    } else if (kind === "read") {
      conversation.readTo(seq);
      conversation.ackedRead = Math.max(conversation.ackedRead, seq);
    }
    this.inbox.touch(conversation);
  }

  private hearError(frame: ServerFrame & { type: "ERROR" }): void {
    if (frame.clientMsgId !== undefined) this.outbox.refused(frame.clientMsgId, frame.reason);
    else this.events.emit("problem", new Refused(frame.reason, frame.message));
  }
}
