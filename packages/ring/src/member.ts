import { refuseNewerVersion } from "@skald/model";

/** Members have no version so far. A later program that changes their meaning adds the key `version`. */
const knownVersion = 1;

/** One instance in its ring. Only its owner writes it. Others may only replace it with LEFT. */
export interface Member {
  readonly id: string;
  /** Host and port at which the others call it. */
  readonly address: string;
  /** Where it runs; empty when unknown. */
  readonly zone: string;
  readonly state: MemberState;
  /** Its places on the circle, ascending; empty until it joins, or where the ring places no keys. */
  readonly tokens: Uint32Array;
  /** Grows with each heartbeat, so that no two heartbeats are equal. */
  readonly beat: number;
  /** The owner's clock at its last heartbeat, in ms since the epoch. It is for people, and decides nothing. */
  readonly heartbeatMs: number;
  /** The owner's clock when it first joined, in ms since the epoch. */
  readonly registeredMs: number;
  /** Set for a member that is LEFT when some rows may exist only on its disk. */
  readonly holdsRows?: boolean;
  /** An ingester holds no row from before this time, in ms since the epoch; absent when it holds no rows. */
  readonly oldestMs?: number;
  /**
   * Lost members by id, each with the last sign of life (`signOf`) that this member saw of it: all rows that this member
   * acknowledged while that one could acknowledge them too are in the store.
   */
  readonly covers?: Covers;
}

export type Covers = Readonly<Record<string, string>>;

/** What changes with each heartbeat of a member, in short. */
export function signOf({ beat, heartbeatMs }: Pick<Member, "beat" | "heartbeatMs">): string {
  return `${heartbeatMs}.${beat}`;
}

/** A member as one process sees it. */
export interface RingInstance extends Member {
  /** Whether its heartbeats came in time while this process could see them. */
  readonly isHealthy: boolean;
  /** Whether all rows that it has are in the store, as all others say: it is lost, and no answer misses it. */
  readonly isCovered?: boolean;
}

/**
 * PENDING is there and does no work yet, JOINING chooses its tokens, ACTIVE works, LEAVING takes nothing new. LEFT is what
 * remains of an instance that left or was forgotten, until nobody can still take it for a member.
 */
export type MemberState = (typeof memberStates)[number];

const memberStates = ["PENDING", "JOINING", "ACTIVE", "LEAVING", "LEFT"] as const;

/** A member as a store keeps it: JSON, with the tokens as base64 of 32-bit numbers, low byte first. */
export function encodeMember(member: Member): string {
  const { tokens, ...rest } = member;
  const bytes = Buffer.alloc(tokens.length * 4);
  for (const [i, token] of tokens.entries()) bytes.writeUInt32LE(token, i * 4);
  return JSON.stringify({ ...rest, tokens: bytes.toString("base64") });
}

/**
 * Reads what `encodeMember` wrote, even with more keys; undefined for anything else. Throws
 * `newer_version` for a member whose version it does not know.
 */
export function decodeMember(text: string): Member | undefined {
  const value = parseObject(text);
  if (value === undefined) return undefined;
  refuseNewerVersion(`ring member ${value.id}`, { found: value.version, known: knownVersion });
  const { id, address, zone, state, tokens, beat, heartbeatMs, registeredMs } = value;
  const texts = [id, address, zone, tokens];
  const numbers = [beat, heartbeatMs, registeredMs];
  if (!texts.every((one) => typeof one === "string")) return undefined;
  if (!numbers.every((one) => Number.isFinite(one))) return undefined;
  if (value.oldestMs !== undefined && !Number.isFinite(value.oldestMs)) return undefined;
  if (!isCovers(value.covers)) return undefined;
  if (!memberStates.includes(state as MemberState)) return undefined;
  return { ...(value as unknown as Member), tokens: decodeTokens(tokens as string) };
}

function isCovers(value: unknown): value is Covers | undefined {
  if (value === undefined) return true;
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).every((sign) => typeof sign === "string");
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function decodeTokens(text: string): Uint32Array {
  const bytes = Buffer.from(text, "base64");
  const tokens = new Uint32Array(bytes.length >>> 2);
  for (let i = 0; i < tokens.length; i++) tokens[i] = bytes.readUInt32LE(i * 4);
  return tokens.sort();
}

interface LeftMember {
  readonly id: string;
  readonly nowMs: number;
  readonly zone?: string;
  readonly holdsRows?: boolean;
}

/** The field that replaces a member that left or was forgotten. */
export function leftMember({ id, nowMs, zone = "", holdsRows = false }: LeftMember): Member {
  const rest = { beat: 0, heartbeatMs: nowMs, registeredMs: 0, holdsRows };
  return { id, address: "", zone, state: "LEFT", tokens: new Uint32Array(0), ...rest };
}
