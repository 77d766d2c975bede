import { codes, type Reason } from "./codes.js";

/** The server said no, and why. */
export class Refused extends Error {
  override readonly name = "Refused";

  constructor(
    readonly reason: Reason,
    message: string = codes[reason]?.text ?? reason,
    /** The HTTP status, if it came over HTTP. */
    readonly status?: number,
    /** The server said when to come back. */
    readonly retryAfterMs?: number,
    /** Names the request in the server's log. */
    readonly requestId?: string,
  ) {
    super(message);
  }

  /** It passes by itself: the same request may succeed a little later. */
  get mayRetry(): boolean {
    return mayRetry(this.reason);
  }
}

/** No answer came that one can use; whether the server did it is not known. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

/** Whether a refusal passes by itself. */
export function mayRetry(reason: string): boolean {
  return reason in codes && codes[reason as Reason].retry;
}

/** Whether asking again later makes sense. */
export function isPassing(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof Refused && error.mayRetry);
}

const OVER: readonly Reason[] = [
  "missing_token",
  "invalid_token",
  "session_invalid",
  "unauthorized",
  "reauth_uid_mismatch",
  "kicked",
];

/** Whether a refusal says that the sign-in is over. */
export function endsSession(reason: Reason): boolean {
  return OVER.includes(reason);
}
