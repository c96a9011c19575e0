import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { unavailable } from "@skald/model";
import { messageWithCauses } from "@skald/runtime";

/**
 * A directory that one process has to itself. The lock is one of the operating system, on the file `lock`, so it ends
 * with its process however that ends; Node offers such locks only through SQLite. `lock.owner` says which process
 * has the lock.
 */
export class DirectoryLock {
  readonly #dir: string;
  #database: DatabaseSync | undefined;

  /** Makes the directory when it is not there. Throws unavailable, naming the process, when another one has it. */
  static take(dir: string): DirectoryLock {
    mkdirSync(dir, { recursive: true });
    const database = lockFile(dir);
    if (database !== undefined) writeFileSync(ownerPath(dir), JSON.stringify(thisOwner()));
    return new DirectoryLock(dir, database);
  }

  private constructor(dir: string, database: DatabaseSync | undefined) {
    this.#dir = dir;
    this.#database = database;
  }

  /** False on a Node without SQLite (before 22.13), where the lock keeps no process out. */
  get isExclusive(): boolean {
    return this.#database !== undefined;
  }

  release(): void {
    if (this.#database === undefined) return;
    rmSync(ownerPath(this.#dir), { force: true });
    this.#database.close();
    this.#database = undefined;
  }
}

interface Owner {
  readonly pid: number;
  readonly host: string;
  /** RFC 3339 */
  readonly since: string;
}

/** What SQLite answers when another connection has the lock. */
const busy = 5;

function lockFile(dir: string): DatabaseSync | undefined {
  const sqlite = process.getBuiltinModule("node:sqlite");
  if (sqlite === undefined) return undefined;
  let database: DatabaseSync | undefined;
  try {
    database = new sqlite.DatabaseSync(join(dir, "lock"));
    // Nothing is ever written; a journal on disk would only lie there.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return database;
  } catch (error) {
    database?.close();
    if ((error as { errcode?: number }).errcode === busy) throw inUse(dir);
    throw unavailable(`directory ${dir} cannot be locked: ${messageWithCauses(error)}`, {
      cause: error,
    });
  }
}

function inUse(dir: string): Error {
  const owner = readOwner(dir);
  const who =
    owner === undefined
      ? "another process"
      : `process ${owner.pid} of ${owner.host} since ${owner.since}`;
  return unavailable(`directory ${dir} is in use by ${who}; stop it, or use another directory`);
}

function readOwner(dir: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(ownerPath(dir), "utf8")) as Owner;
  } catch {
    // It has the lock and has not written its name yet.
    return undefined;
  }
}

function ownerPath(dir: string): string {
  return join(dir, "lock.owner");
}

function thisOwner(): Owner {
  return { pid: process.pid, host: hostname(), since: new Date().toISOString() };
}
