// React against a real server: the page of one user, and another user who sends messages.
import { Window } from "happy-dom";
import { createElement as h, useSyncExternalStore } from "react";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

import type { Client } from "../src/index.js";
import { Server, until } from "./server.js";

let server: Server;
let alice: Client;
let bob: Client;
let renders = 0;

beforeAll(async () => {
  server = await Server.start();
  alice = await server.person("alice");
  bob = await server.person("bob");
});

afterAll(() => server.stop());

function Chat() {
  const messages = useSyncExternalStore(alice.subscribe, () => alice.messages({ to: "bob" }));
  const lines = useSyncExternalStore(alice.subscribe, () => alice.conversations());
  renders += 1;
  const said = messages.map(({ body, state }) => `${body} ${state}`);
  return h("p", {}, [...lines.map(({ name, unread }) => `${name} ${unread}`), ...said].join(", "));
}

test("a page follows a real conversation, and rests when nothing happens", async () => {
  const window = new Window();
  for (const [name, value] of Object.entries({
    window,
    document: window.document,
    navigator: window.navigator,
  })) {
    vi.stubGlobal(name, value);
  }
  const complaints = vi.spyOn(console, "error");
  const { createRoot } = await import("react-dom/client");
  const page = window.document.body as unknown as HTMLElement;
  const root = createRoot(page);
  root.render(h(Chat));
  await until(() => renders > 0, "the first render");
  await bob.saved(bob.send({ to: "alice" }, "Hello"));
  await until(() => page.textContent === "bob 1, Hello received", "the message");
  alice.markRead({ to: "bob" });
  await until(() => page.textContent === "bob 0, Hello received", "read");
  await alice.saved(alice.send({ to: "bob" }, "Hi"));
  await until(() => bob.messages({ to: "alice" }).length === 2, "bob hears it");
  bob.markRead({ to: "alice" });
  await until(() => page.textContent === "bob 0, Hello received, Hi read", "bob has read");

  await new Promise((later) => setTimeout(later, 1500)); // heads are compared when it has become quiet
  const before = renders;
  alice.refresh();
  await new Promise((later) => setTimeout(later, 1000));
  expect(renders).toBe(before);
  for (let i = 0; i < 100; i += 1) bob.send({ to: "alice" }, `text ${i}`);
  await until(() => page.textContent?.includes("text 99 received"), "all of them");
  await new Promise((later) => setTimeout(later, 300));
  expect(renders - before).toBeGreaterThan(0);
  // One frame changes messages and the list together; the ACKs of a burst may add a few renders.
  expect(renders - before).toBeLessThanOrEqual(110);
  expect(complaints).not.toHaveBeenCalled();
  root.unmount();
});
