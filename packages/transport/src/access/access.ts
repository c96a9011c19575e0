import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { SkaldError, tooLarge } from "@skald/model";
import { parseTenants, type TenantOptions } from "../tenant.js";
import { PasswordChecker } from "./passwords.js";
import { digestOfToken, type Right, readUsers, type User, type Users } from "./users-file.js";

/** What a request needs; `read all` is the right to read with every tenant, `open` nothing at all. */
export type Need = Right | "read all" | "open";

/** Why requests are refused. */
export const refusalReasons = [
  "no_credentials",
  "bad_credentials",
  "busy",
  "right",
  "tenant",
] as const;
export type RefusalReason = (typeof refusalReasons)[number];

export interface AccessOptions {
  readonly file: string;
  readonly tenancy: TenantOptions;
  readonly onRefusal?: (reason: RefusalReason) => void;
  /** Called when a changed file was read, or with the reason that it cannot be used. */
  readonly onReload?: (error: unknown) => void;
}

/** Pause between two looks at the file. */
const periodMs = 10_000;
const maxFileBytes = 1024 * 1024;
const maxCredentialChars = 4096;
const challenges = 'Basic realm="skald", charset="UTF-8", Bearer realm="skald"';
const tenantHeader = "x-scope-orgid";

/**
 * Who may do what, by a users file. A file that cannot be used is an error at the start; later the old users stay until it
 * can be used again.
 */
export class Access {
  readonly #options: AccessOptions;
  readonly #passwords = new PasswordChecker();
  readonly #tokenKey = randomBytes(32);
  #users: Users;
  /** By a digest whose key only this process has, so that the time of a look-up says nothing. */
  #byToken: ReadonlyMap<string, { readonly digest: Buffer; readonly user: User }> = new Map();
  /** The text that was read last, or the error of reading it. */
  #last: string;
  #timer: NodeJS.Timeout | undefined;
  #onChange: () => void = () => undefined;

  /** Reads the file; throws an error that names what cannot be used. */
  constructor(options: AccessOptions) {
    this.#options = options;
    const text = readFileSync(options.file, "utf8");
    this.#users = this.#read(text);
    this.#last = text;
  }

  /** Reads the file again from time to time. */
  watch(): void {
    this.#timer = setInterval(() => void this.reload(), periodMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Calls a function whenever other users hold. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** Takes over a changed file that can be used. */
  async reload(): Promise<void> {
    let failure: unknown;
    let found: string;
    try {
      found = await readFile(this.#options.file, "utf8");
      if (found !== this.#last) this.#users = this.#read(found);
    } catch (error) {
      failure = error;
      found = String(error);
    }
    if (found === this.#last) return;
    this.#last = found;
    this.#options.onReload?.(failure);
    if (failure === undefined) this.#onChange();
  }

  /**
   * Returns if the sender of a request may do what it needs for the tenants that it names; a user of one tenant need not name
   * it. Throws 401, 403, or 429 while too many passwords of a user are checked.
   */
  async authorize(headers: IncomingHttpHeaders, need: Need): Promise<void> {
    if (need === "open") return;
    const user = await this.#authenticate(credentialsOf(headers));
    const right = need === "read all" ? "read" : need;
    if (!user.rights.has(right)) {
      throw this.#refuse("right", `user ${user.name} may not do this: it needs the right ${right}`);
    }
    if (need === "operate") return;
    if (need !== "read all") this.#checkTenants(user, headers);
    else if (user.tenants !== undefined)
      throw this.#refuse("tenant", `user ${user.name} may not do this: it needs every tenant (*)`);
  }

  #checkTenants({ name, tenants }: User, headers: IncomingHttpHeaders): void {
    const { tenancy } = this.#options;
    if (tenants === undefined) return;
    if (tenancy.authEnabled && (headers[tenantHeader] ?? "") === "") {
      // A request that needs no tenant goes on without one; every other is refused.
      if (tenants.size === 1) headers[tenantHeader] = [...tenants][0] as string;
      return;
    }
    const other = parseTenants(headers[tenantHeader], tenancy).find((one) => !tenants.has(one));
    if (other !== undefined)
      throw this.#refuse("tenant", `user ${name} may not name tenant ${other}`);
  }

  async #authenticate(header = ""): Promise<User> {
    if (header === "") {
      throw this.#refuse(
        "no_credentials",
        "this needs a user: send Authorization: Basic or Bearer",
      );
    }
    const [, scheme = "", given = ""] = /^(\S+) +(\S+) *$/.exec(header) ?? [];
    const isShort = header.length <= maxCredentialChars;
    const user = isShort ? await this.#find(scheme.toLowerCase(), given) : undefined;
    if (user === undefined)
      throw this.#refuse("bad_credentials", "unknown user, password or token");
    return user;
  }

  async #find(scheme: string, given: string): Promise<User | undefined> {
    // Collectors of Splunk have their own word for it.
    if (scheme === "bearer" || scheme === "splunk") {
      const digest = Buffer.from(digestOfToken(given), "hex");
      const found = this.#byToken.get(this.#blind(digest));
      return found !== undefined && timingSafeEqual(found.digest, digest) ? found.user : undefined;
    }
    if (scheme !== "basic") return undefined;
    const text = Buffer.from(given, "base64").toString("utf8");
    const at = text.indexOf(":");
    if (at < 0) return undefined;
    const user = this.#users.byName.get(text.slice(0, at));
    try {
      const name = user?.name ?? "";
      const isRight = await this.#passwords.check(name, text.slice(at + 1), user?.password);
      return isRight ? user : undefined;
    } catch (error) {
      this.#options.onRefusal?.("busy");
      throw error;
    }
  }

  #read(text: string): Users {
    const { file } = this.#options;
    if (text.length > maxFileBytes) throw tooLarge(`${file} is larger than ${maxFileBytes} bytes`);
    const users = readUsers(text, file);
    const tokens = [...users.byToken].map(([hex, user]) => {
      const digest = Buffer.from(hex, "hex");
      return [this.#blind(digest), { digest, user }] as const;
    });
    this.#byToken = new Map(tokens);
    return users;
  }

  #blind(digest: Buffer): string {
    return createHmac("sha256", this.#tokenKey).update(digest).digest("hex");
  }

  #refuse(
    reason: "right" | "tenant" | "no_credentials" | "bad_credentials",
    text: string,
  ): SkaldError {
    this.#options.onRefusal?.(reason);
    const isUnknown = reason === "no_credentials" || reason === "bad_credentials";
    return new SkaldError(
      "unauthenticated",
      text,
      isUnknown ? { detail: { challenges } } : { status: 403 },
    );
  }
}

/** What a client proves itself with; agents of Datadog send their key, which is a token here, in a header of its own. */
function credentialsOf(headers: IncomingHttpHeaders): string | undefined {
  const { authorization, "dd-api-key": key } = headers;
  return authorization ?? (typeof key === "string" ? `Bearer ${key}` : undefined);
}

/** The challenges of a 401 that asks for credentials; undefined for other errors. */
export function challengesOf({ status, detail }: SkaldError): string | undefined {
  if (status !== 401 || typeof detail !== "object" || detail === null) return undefined;
  const { challenges: found } = detail as { challenges?: unknown };
  return typeof found === "string" ? found : undefined;
}
