import { readFile } from "node:fs/promises";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";
import { serve, type Site } from "../../dev/serve.mjs";
import { PASSWORD, Server } from "./server.ts";

export { PASSWORD } from "./server.ts";

const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  // A host name that is no secure origin, like that of a server in a local network.
  "--host-resolver-rules=MAP nexo.test 127.0.0.1",
];

/**
 * The page as the server serves it; from `dev/serve.mjs` if the server was built without it or with an older
 * one.
 */
async function served(url: string): Promise<Site> {
  const page = await (await fetch(url)).text();
  const ours = await readFile(new URL("../../dist/index.html", import.meta.url), "utf8");
  if (page !== ours) return serve(url);
  const aim = () => {
    throw new Error("the server's own page asks the server");
  };
  return { url, aim, close: async () => {} };
}

interface PersonOptions extends BrowserContextOptions {
  nickname?: string;
  avatar?: string;
}

/** A server, the page it serves, a browser, and its users. */
export class World {
  private readonly people: Person[] = [];

  private constructor(
    readonly server: Server,
    readonly site: Site,
    readonly browser: Browser,
  ) {}

  /** The page comes from the server, or from `dev/serve.mjs` where the server is restarted or suspended. */
  static async start(settings: Record<string, string> = {}, from: "beside" | "server" = "server"): Promise<World> {
    const server = await Server.start(settings);
    const site = await (from === "server" ? served : serve)(server.url);
    const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS });
    return new World(server, site, browser);
  }

  /** A new user with a separate browser, at the sign-in page. */
  async guest(options: PersonOptions = {}): Promise<Person> {
    const { nickname: _, avatar: __, ...rest } = options;
    const context = await this.browser.newContext({ locale: "en-GB", ...rest });
    context.setDefaultTimeout(10_000);
    const person = new Person(this, context);
    this.people.push(person);
    await person.open();
    return person;
  }

  /** A user who is signed in. */
  async person(id: string, options: PersonOptions = {}): Promise<Person> {
    await this.server.register(id, options.nickname, options.avatar);
    const person = await this.guest(options);
    await person.signIn(id);
    return person;
  }

  /** Closes everything, and fails if a page reported errors. */
  async stop(): Promise<void> {
    await this.browser.close();
    await this.site.close();
    await this.server.stop();
    const problems = this.people.flatMap((one) => one.problems);
    if (problems.length > 0) throw new Error(`pages complained:\n${problems.join("\n")}`);
  }
}

/** A user at a page. */
export class Person {
  id = "";
  page!: Page;
  readonly problems: string[] = [];
  private readonly allowed: RegExp[] = [];

  constructor(
    readonly world: World,
    readonly context: BrowserContext,
  ) {
    context.on("page", (page) => this.watch(page));
  }

  /** Expects such an error. */
  allow(...complaints: RegExp[]): void {
    this.allowed.push(...complaints);
  }

  /** The browser itself reports an unreachable server and refusals. */
  allowBadDays(): void {
    this.allow(/Failed to load resource/, /WebSocket connection to/);
  }

  private watch(page: Page): void {
    const complain = (text: string) => {
      if (!this.allowed.some((one) => one.test(text))) this.problems.push(`${this.id}: ${text}`);
    };
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") complain(`${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => complain(String(error)));
    page.on("request", (request) => {
      const { host, protocol } = new URL(request.url());
      if (protocol !== "data:" && host !== new URL(this.world.site.url).host) complain(`asks ${request.url()}`);
    });
  }

  /** Another tab. */
  async open(hash = ""): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(this.world.site.url + "/" + hash);
    this.page ??= page;
    return page;
  }

  async signIn(id: string, password = PASSWORD, page = this.page): Promise<void> {
    this.id = id;
    await page.getByRole("textbox", { name: /User ID|用户 ID/ }).fill(id);
    await page.locator("input[name=password]").fill(password);
    await page.getByRole("button", { name: /^(Sign in|登录)$/ }).click();
    await this.online(page);
  }

  async online(page = this.page): Promise<void> {
    await page.locator("#search").waitFor({ state: "attached" });
  }

  /** Opens the chat with a user by id. */
  async chatWith(id: string): Promise<void> {
    const { page } = this;
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("menuitem", { name: "New private chat" }).click();
    await page.getByRole("combobox", { name: "Name or user ID" }).fill(id);
    await page.getByRole("button", { name: "Start chatting" }).click();
    await this.field.waitFor();
  }

  /** The row of a conversation in the list. */
  line(name: string): Locator {
    const named = this.page.locator(".name", { hasText: name });
    return this.page.getByRole("navigation").getByRole("link").filter({ has: named });
  }

  get field(): Locator {
    return this.page.getByLabel("Write a message");
  }

  async say(text: string): Promise<void> {
    await this.field.fill(text);
    await this.field.press("Enter");
  }

  /** The bubble that has this text. */
  bubble(text: string): Locator {
    return this.page.locator("article").filter({ hasText: text }).last();
  }

  /** Waits until an own message has this state. */
  async reaches(text: string, state: string): Promise<void> {
    await this.page.locator(`article[data-state="${state}"]`).filter({ hasText: text }).last().waitFor();
  }

  /** Chooses from the menu of a message. */
  async choose(text: string, choice: string): Promise<void> {
    await this.bubble(text).locator(".bubble").click({ button: "right" });
    await this.page.getByRole("menuitem", { name: choice }).click();
  }
}
