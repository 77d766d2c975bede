import type { Texts } from "./texts/en.ts";

const formats = new Map<string, Intl.DateTimeFormat>();

/** The browser's own variant of the language, for its time and date formats. */
function browserLocale(locale: string): string {
  const language = locale.slice(0, 2);
  const wanted = globalThis.navigator?.languages ?? [];
  return wanted.find((one) => one.slice(0, 2) === language) ?? locale;
}

function format(locale: string, name: string, options: Intl.DateTimeFormatOptions) {
  const key = `${locale} ${name}`;
  let known = formats.get(key);
  if (known === undefined) formats.set(key, (known = new Intl.DateTimeFormat(browserLocale(locale), options)));
  return known;
}

/** The start of the day, and of the next one. */
export function dayOf(at: number): { from: number; to: number } {
  const date = new Date(at);
  const [year, month, day] = [date.getFullYear(), date.getMonth(), date.getDate()];
  return { from: +new Date(year, month, day), to: +new Date(year, month, day + 1) };
}

/** How many days before today. */
function daysAgo(at: number, now: number): number {
  // From noon to noon, since a day may have 23 hours.
  const noon = (moment: number) => dayOf(moment).from + 43_200_000;
  return Math.round((noon(now) - noon(at)) / 86_400_000);
}

export function clockTime(t: Texts, at: number): string {
  return format(t.locale, "clock", { timeStyle: "short" }).format(at);
}

/** An end: the time if it is today, else with the date. */
export function untilName(t: Texts, at: number, now: number): string {
  if (daysAgo(at, now) === 0) return clockTime(t, at);
  return format(t.locale, "until", { dateStyle: "medium", timeStyle: "short" }).format(at);
}

export function dayName(t: Texts, at: number, now: number): string {
  const ago = daysAgo(at, now);
  if (ago === 0) return t.day.today;
  if (ago === 1) return t.day.yesterday;
  const isThisYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  if (isThisYear) {
    const options = { weekday: "long", month: "long", day: "numeric" } as const;
    return format(t.locale, "day", options).format(at);
  }
  return format(t.locale, "date", { dateStyle: "long" }).format(at);
}

/** For the list: the time if it is today, else the short date. */
export function shortTime(t: Texts, at: number, now: number): string {
  const ago = daysAgo(at, now);
  if (ago <= 0) return clockTime(t, at);
  if (ago === 1) return t.day.yesterday;
  if (ago < 7) return format(t.locale, "weekday", { weekday: "short" }).format(at);
  return format(t.locale, "short", { year: "2-digit", month: "numeric", day: "numeric" }).format(at);
}

/** When a user was last seen. */
export function agoName(t: Texts, at: number, now: number): string {
  const minutes = Math.floor((now - at) / 60_000);
  if (minutes < 1) return t.ago.now;
  if (minutes < 60) return t.ago.minutes(minutes);
  if (minutes < 24 * 60) return t.ago.hours(Math.floor(minutes / 60));
  return dayName(t, at, now);
}

export function fullTime(t: Texts, at: number): string {
  const options = { dateStyle: "full", timeStyle: "medium" } as const;
  return format(t.locale, "full", options).format(at);
}
