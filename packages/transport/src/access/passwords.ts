import {
  createHmac,
  randomBytes,
  type ScryptOptions,
  scrypt as scryptWithCallback,
  timingSafeEqual,
} from "node:crypto";
import { promisify } from "node:util";
import { SkaldError } from "@skald/model";
import { sleep } from "@skald/runtime";
import { LRUCache } from "lru-cache";

const scrypt = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(scryptWithCallback);

/** What a password became by scrypt (RFC 7914), in PHC form: `$scrypt$ln=14,r=8,p=1$SALT$HASH`. */
export interface PasswordHash {
  /** The logarithm of the cost; it and the block size give the memory, `128 * r * 2^ln` bytes. */
  readonly ln: number;
  readonly r: number;
  readonly p: number;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/** 16 MiB and some 40 ms of a thread for each check. */
const usual = { ln: 14, r: 8, p: 1 };
const saltBytes = 16;
const hashBytes = 32;
/** The most that one check may take. */
const maxMemoryBytes = 64 * 1024 * 1024;
const maxParallel = 4;
const form = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** Hashes a password with a salt of its own. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes);
  const hash = await derive(password, { ...usual, salt, hash: Buffer.alloc(hashBytes) });
  const [shownSalt, shownHash] = [salt, hash].map((one) =>
    one.toString("base64").replace(/=+$/, ""),
  );
  return `$scrypt$ln=${usual.ln},r=${usual.r},p=${usual.p}$${shownSalt}$${shownHash}`;
}

/** Reads a hash; throws an error that says what is wrong with it and shows nothing of it. */
export function parsePasswordHash(text: string): PasswordHash {
  const found = form.exec(text);
  if (found === null)
    throw new Error("must be $scrypt$ln=..,r=..,p=..$SALT$HASH; `skald auth hash` makes one");
  const [ln = 0, r = 0, p = 0] = found.slice(1, 4).map(Number);
  const [salt, hash] = found.slice(4).map((one) => Buffer.from(one, "base64"));
  if (ln < 10 || r < 1 || p < 1 || p > maxParallel || 128 * r * 2 ** ln > maxMemoryBytes)
    throw new Error("has parameters that are too weak or too dear: ln >= 10, 64 MiB, p <= 4");
  if (salt === undefined || hash === undefined || salt.length < 8 || hash.length < 16)
    throw new Error("has a salt of less than 8 bytes or a hash of less than 16");
  return { ln, r, p, salt, hash };
}

function derive(password: string, { ln, r, p, salt, hash }: PasswordHash): Promise<Buffer> {
  const N = 2 ** ln;
  return scrypt(password, salt, hash.length, { N, r, p, maxmem: 2 * 128 * r * N });
}

/** Checks that may wait, of all names and of one. */
const maxWaiting = 64;
const maxWaitingPerName = 8;
/** After a wrong password the name's next check waits. */
const pauseAfterWrongMs = 200;
const maxKnown = 10_000;
const maxWrong = 1_000;
const wrongForMs = 60_000;

/**
 * Checks passwords without ever holding up the main thread: scrypt runs on the thread pool of Node, one at a time, and its
 * answers are remembered by a digest whose key only this process has. Who guesses holds up only those that use the same name.
 */
export class PasswordChecker {
  readonly #key = randomBytes(32);
  readonly #known = new LRUCache<string, true>({ max: maxKnown });
  readonly #wrong = new LRUCache<string, true>({ max: maxWrong, ttl: wrongForMs });
  /** Checks that run or wait, by digest. */
  readonly #asked = new Map<string, Promise<boolean>>();
  /** The last check of each name, and how many wait for their turn. */
  readonly #lanes = new Map<string, { last: Promise<unknown>; waiting: number }>();
  #last: Promise<unknown> = Promise.resolve();
  readonly #nobody: PasswordHash = {
    ...usual,
    salt: randomBytes(saltBytes),
    hash: randomBytes(hashBytes),
  };

  /**
   * Whether a password is the one of a name. Names without a hash take as long, and are all one name here. Throws
   * rate_limited when too many checks of the name wait.
   */
  check(
    name: string,
    password: string,
    hash: PasswordHash | undefined,
  ): boolean | Promise<boolean> {
    const { salt, hash: derived } = hash ?? this.#nobody;
    const parts = [name, password].map((part) => Buffer.from(part));
    const mac = createHmac("sha256", this.#key);
    for (const part of [...parts, salt, derived]) mac.update(`${part.length}:`).update(part);
    const digest = mac.digest("base64");
    if (this.#known.has(digest)) return true;
    if (this.#wrong.has(digest)) return false;
    const asked =
      this.#asked.get(digest) ??
      this.#ask(digest, hash === undefined ? "" : name, () => {
        return this.#matches(password, hash);
      });
    this.#asked.set(digest, asked);
    return asked;
  }

  #ask(digest: string, name: string, run: () => Promise<boolean>): Promise<boolean> {
    const lane = this.#lanes.get(name) ?? { last: Promise.resolve(), waiting: 0 };
    if (this.#asked.size >= maxWaiting || lane.waiting >= maxWaitingPerName) throw tooManyChecks();
    lane.waiting++;
    this.#lanes.set(name, lane);
    const answer = lane.last.then(() => this.#inTurn(run));
    lane.last = answer.then((isRight) => (isRight ? undefined : sleep(pauseAfterWrongMs)));
    void lane.last.then(() => {
      if (--lane.waiting === 0) this.#lanes.delete(name);
    });
    return answer.then((isRight) => {
      this.#asked.delete(digest);
      (isRight ? this.#known : this.#wrong).set(digest, true);
      return isRight;
    });
  }

  #inTurn(run: () => Promise<boolean>): Promise<boolean> {
    const answer = this.#last.then(run);
    this.#last = answer;
    return answer;
  }

  /** Never rejects: the parameters of a hash were checked when it was read. */
  async #matches(password: string, hash: PasswordHash | undefined): Promise<boolean> {
    const wanted = hash ?? this.#nobody;
    const found = await derive(password, wanted).catch(() => Buffer.alloc(wanted.hash.length));
    return timingSafeEqual(found, wanted.hash) && hash !== undefined;
  }
}

function tooManyChecks(): SkaldError {
  const text = "too many passwords are being checked; try again later";
  return new SkaldError("rate_limited", text, { retryAfterSeconds: 1 });
}
