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

/** Dispatches server frames to the inbox, the outbox, sync and typing. */
export class Dispatcher {
  constructor(
    private readonly me: string,
    private readonly events: Emitter<Events>,
    private readonly inbox: Inbox,
    private readonly outbox: Outbox,
    private readonly sync: Sync,
    private readonly typing: Typing,
  ) {}

  dispatch(frame: ServerFrame): void {
    switch (frame.type) {
      case "SINGLE_CHAT":
      case "GROUP_CHAT":
        return this.onChat(frame);
      case "ACK":
        return this.onAck(frame);
      case "MESSAGE_REVOKED":
      case "GROUP_CHANGED":
        return this.inbox.receiveChange(changeFromFrame(frame));
      case "ERROR":
        return this.onError(frame);
      case "GROUP_NOTIFY":
        return this.inbox.expect(this.inbox.getOrCreate(frame.conversationId), Number(frame.msgSeq));
      case "RESEND_DONE":
        return this.sync.pageDone(frame.hasMore);
      case "TYPING": {
        const target = frame.groupId === undefined ? { to: frame.from } : { groupId: frame.groupId };
        return this.typing.start(conversationOf(this.me, target), frame.from);
      }
      case "CONVERSATION_SETTINGS": {
        const conversation = this.inbox.getOrCreate(frame.conversationId);
        if (conversation.receive === "blocked") this.sync.scheduleHeads(); // fetches what came while it was blocked
        conversation.hasSettings = true;
        conversation.receive = frame.receive;
        conversation.isPinned = frame.pinned;
        conversation.hiddenSeq = frame.hiddenSeq === undefined ? undefined : Number(frame.hiddenSeq);
        return this.inbox.touch(conversation);
      }
      case "USER_UPDATED":
        return this.onUserUpdated(frame);
      case "GROUP_JOIN_REQUEST": {
        const { groupId, from: userId, serverMsgId: requestId, body: message } = frame;
        return this.events.emit("joinRequest", { groupId, userId, requestId, message });
      }
      case "GROUP_JOIN_DECISION": {
        const { groupId, from: by, serverMsgId: requestId } = frame;
        const isAccepted = frame.body === "ACCEPTED";
        return this.events.emit("joinDecision", { groupId, by, requestId, isAccepted });
      }
    }
  }

  /** A private conversation has the nickname and avatar of its peer. */
  private onUserUpdated(frame: ServerFrame & { type: "USER_UPDATED" }): void {
    const { userId, nickname, avatar } = frame;
    const conversation = this.inbox.conversations.get(conversationOf(this.me, { to: userId }));
    if (conversation !== undefined && userId !== this.me) {
      conversation.name = nickname;
      conversation.avatar = avatar;
      this.inbox.touch(conversation);
    }
    this.events.emit("person", { userId, nickname, avatar });
  }

  private onChat(frame: ChatFrame): void {
    const message = fromFrame(frame, this.me);
    this.typing.stop(message.conversationId, message.from);
    if (message.state !== "preview") return this.inbox.receive(message);
    const conversation = this.inbox.getOrCreate(message.conversationId);
    const isKnown =
      conversation.previews.has(message.serverMsgId) ||
      conversation.messages.find(message.serverMsgId) !== undefined ||
      (message.isMine && conversation.outgoing.has(message.clientMsgId)) ||
      conversation.arrived.buffered().some((early) => early.serverMsgId === message.serverMsgId);
    if (isKnown) return;
    conversation.previews.set(message.serverMsgId, message);
    this.events.emit("message", message);
    this.inbox.touch(conversation);
  }

  private onAck(frame: AckFrame): void {
    const conversation = this.inbox.getOrCreate(frame.conversationId);
    switch (frame.ackType) {
      case "accepted":
        return this.onAccepted(conversation, frame);
      case "saved":
        return this.onSaved(conversation, frame);
      case "dropped":
        return this.onDropped(conversation, frame);
      case "revoked":
        return this.inbox.recall(conversation, frame.serverMsgId);
      case "delivered":
      case "read":
        return this.onReceipt(conversation, frame, frame.ackType);
    }
  }

  private onAccepted(conversation: Conversation, frame: AckFrame): void {
    const { clientMsgId = "", serverMsgId } = frame;
    const message = conversation.outgoing.get(clientMsgId);
    if (this.outbox.accepted(conversation.id, clientMsgId) === undefined) return;
    if (message === undefined || message.state !== "sending") return;
    const body = frame.body ?? message.body; // the server may have masked words of the operator's list
    const accepted: Message = { ...message, serverMsgId, body, state: "accepted" };
    conversation.outgoing.set(clientMsgId, accepted);
    this.events.emit("update", accepted);
    this.inbox.touch(conversation);
  }

  private onSaved(conversation: Conversation, frame: AckFrame): void {
    const { clientMsgId = "", serverMsgId } = frame;
    const saved = { serverMsgId, seq: Number(frame.msgSeq), at: frame.ts ?? 0 };
    const isOurs = frame.from === undefined || frame.from === this.me;
    const waiting = isOurs ? conversation.outgoing.get(clientMsgId) : undefined;
    const preview = conversation.previews.get(serverMsgId);
    if (waiting !== undefined) {
      this.outbox.answered(conversation.id, clientMsgId);
      this.inbox.receive({ ...waiting, ...saved, body: frame.body ?? waiting.body, state: "saved" });
    } else if (preview !== undefined) {
      this.inbox.receive({ ...preview, ...saved, state: preview.isMine ? "saved" : "received" });
    } else {
      this.inbox.expect(conversation, saved.seq);
    }
  }

  private onDropped(conversation: Conversation, frame: AckFrame): void {
    const preview = conversation.previews.get(frame.serverMsgId);
    if (preview !== undefined) this.inbox.dropPreview(conversation, preview);
  }

  private onReceipt(
    conversation: Conversation,
    frame: AckFrame,
    kind: "delivered" | "read",
  ): void {
    const [userId, seq] = [frame.from ?? "", Number(frame.msgSeq)];
    if (userId !== this.me) {
      this.inbox.applyReceipt(conversation, kind, seq, userId);
      this.events.emit("receipt", { conversationId: conversation.id, userId, kind, seq });
    } else if (kind === "read") {
      conversation.readTo(seq);
      conversation.ackedRead = Math.max(conversation.ackedRead, seq);
    }
    this.inbox.touch(conversation);
  }

  private onError(frame: ServerFrame & { type: "ERROR" }): void {
    if (frame.clientMsgId !== undefined) this.outbox.refused(frame.clientMsgId, frame.reason);
    else this.events.emit("problem", new Refused(frame.reason, frame.message));
  }
}
