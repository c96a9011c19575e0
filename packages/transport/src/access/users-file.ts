import { createHash } from "node:crypto";
import { invalidArgument } from "@skald/model";
import { field, readFileBySchema } from "@skald/runtime/config";
import { checkTenant } from "../tenant.js";
import { type PasswordHash, parsePasswordHash } from "./passwords.js";

/** What a user may do. */
export const rights = ["read", "write", "rules", "delete", "operate"] as const;
export type Right = (typeof rights)[number];

export interface User {
  readonly name: string;
  readonly rights: ReadonlySet<Right>;
  /** Undefined: every tenant. */
  readonly tenants: ReadonlySet<string> | undefined;
  readonly password: PasswordHash | undefined;
}

/** The users of a file. */
export interface Users {
  readonly byName: ReadonlyMap<string, User>;
  /** By the SHA-256 of the token, in hex. */
  readonly byToken: ReadonlyMap<string, User>;
}

const user = field.section("Someone who may do something.", {
  name: field.text("", "name, also the one of basic authentication"),
  password: field.secret("what `skald auth hash` made of the password"),
  tokens: field.list([], "what `skald auth token` made of bearer tokens"),
  tenants: field.list([], "tenants that the user may name; *: every tenant"),
  rights: field.list([], `what the user may do: ${rights.join(", ")}`),
});
const usersFile = field.section("Who may do what.", {
  users: field.sections(user, "all users"),
});

const maxUsers = 10_000;
/** The letters that a name may have: no colon, which ends it in basic authentication. */
const legalName = /^[^:\p{Cc}]{1,100}$/u;
const tokenForm = /^sha256:([0-9a-f]{64})$/;

/** Reads a users file; throws an error that names everything that is wrong, and shows nothing that is secret. */
export function readUsers(text: string, file: string): Users {
  const { users } = readFileBySchema(text, file, usersFile);
  const problems: string[] = [];
  const byName = new Map<string, User>();
  const byToken = new Map<string, User>();
  if (users.length === 0) problems.push("it has no users");
  if (users.length > maxUsers) problems.push(`it has more than ${maxUsers} users`);
  for (const [index, given] of users.entries()) {
    const where = legalName.test(given.name) ? `user ${given.name}` : `user ${index + 1}`;
    const tell = (problem: string) => void problems.push(`${where}: ${problem}`);
    const read = readUser(given, tell);
    if (byName.has(given.name)) tell("the name is there twice");
    byName.set(given.name, read);
    for (const token of given.tokens) {
      const digest = tokenForm.exec(token)?.[1];
      if (digest === undefined)
        tell("a token must be sha256: and 64 digits; see `skald auth token`");
      else if (byToken.has(digest)) tell("a token is there twice");
      else byToken.set(digest, read);
    }
  }
  if (problems.length > 0) throw invalidArgument(`${file}: ${problems.join("; ")}`);
  return { byName, byToken };
}

type GivenUser = ReturnType<typeof readFileBySchema<typeof usersFile>>["users"][number];

function readUser(given: GivenUser, tell: (problem: string) => void): User {
  const { name, password, tokens, tenants } = given;
  if (!legalName.test(name)) tell("name must have 1 to 100 letters and no colon");
  if (password === "" && tokens.length === 0) tell("needs a password or tokens");
  if (given.rights.length === 0) tell(`needs rights, some of ${rights.join(", ")}`);
  for (const right of given.rights) {
    if (!isRight(right)) tell(`unknown right "${right}"; there are ${rights.join(", ")}`);
  }
  const everyTenant = tenants.includes("*");
  const needsTenants = given.rights.some((right) => right !== "operate");
  if (tenants.length === 0 && needsTenants) tell("needs tenants, or * for every tenant");
  if (everyTenant && tenants.length > 1) tell("tenants must be * or names");
  if (!everyTenant) for (const tenant of tenants) check(tell, "tenants", () => checkTenant(tenant));
  return {
    name,
    rights: new Set(given.rights.filter(isRight)),
    tenants: everyTenant ? undefined : new Set(tenants),
    password:
      password === "" ? undefined : check(tell, "password", () => parsePasswordHash(password)),
  };
}

function isRight(text: string): text is Right {
  return (rights as readonly string[]).includes(text);
}

function check<T>(tell: (problem: string) => void, key: string, run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    tell(`${key} ${(error as Error).message}`);
    return undefined;
  }
}

/** The form in which a users file has a token. */
export function hashToken(token: string): string {
  return `sha256:${digestOfToken(token)}`;
}

/** The key of a token in `Users.byToken`. Tokens are random, so a fast digest keeps them secret. */
export function digestOfToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}
