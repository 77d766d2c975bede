import { toCamel } from "./casing.js";
import type { Http } from "./http.js";

/** The kind of a device, as `platforms` of a presence names it. */
export type Platform = "iOS" | "Android" | "Windows" | "macOS" | "Web" | "unknown";

/** The platforms by the numbers that HTTP uses. */
const PLATFORMS: readonly Platform[] = ["unknown", "iOS", "Android", "Windows", "macOS", "Web"];

/** A device on which you are signed in. */
export interface Device {
  /** Identifies the sign-in, for `endDevice`. */
  readonly loginId: string;
  readonly platform: Platform;
  /** What the client called the device; often empty. */
  readonly deviceName: string;
  /** The address it signed in from. */
  readonly address: string;
  /** When it signed in; milliseconds since 1970. */
  readonly createdAt: number;
  /** When it last refreshed its token; milliseconds since 1970. */
  readonly lastUsedAt: number;
  /** Whether it is this device. */
  readonly isCurrent: boolean;
  /** Whether it is connected now. */
  readonly isOnline: boolean;
}

/** The devices of the user, newest sign-in first. */
export async function listDevices(http: Http): Promise<Device[]> {
  return (await http.get<object[]>("/user/devices")).map(deviceOf);
}

/** Ends one sign-in, or all but the one that asks; returns how many ended. */
export async function endDevices(http: Http, which: { login_id: string } | { others: true }): Promise<number> {
  return (await http.post<{ ended: number }>("/user/devices/end", which)).ended;
}

function deviceOf(answer: object): Device {
  const { platformId, ...rest } = toCamel<Omit<Device, "platform"> & { platformId: number }>(answer);
  return { ...rest, platform: PLATFORMS[platformId] ?? "unknown" };
}
