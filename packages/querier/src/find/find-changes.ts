import { createHash, randomUUID } from "node:crypto";
import type {
  AskedSpan,
  Catalog,
  ChangesRequest,
  Deletes,
  HeldChanges,
  HeldRows,
  SpanChanges,
} from "@skald/contracts";
import type { TimeRange } from "@skald/model";

interface ChangesDeps {
  readonly ingester: Pick<HeldRows, "changes">;
  readonly catalog: Catalog;
  readonly deletes?: Deletes | undefined;
  readonly deletesOf?: (tenant: string) => string;
}

/** Queries say a little later than this what they look for. */
const marginNs = 60_000_000_000n;

/** A delete request is known everywhere so long after it was made. */
const unknownMs = 3000;

/** The state of the rows of a tenant and span that a query would see. */
interface State {
  /** What ingesters were sent. */
  readonly held: string;
  /** What requests hide. */
  readonly deleted: string;
  /** Segments, where queries may not ask ingesters. */
  readonly stored: string;
}

/**
 * What changed of that which a query would see. Sealing, uploading and merging change nothing. Rows that ingesters are not
 * asked for come into sight with their segments: there the list of segments counts, as it would be for a query.
 */
export async function findChanges(
  { tenants, spans }: ChangesRequest,
  deps: ChangesDeps,
  signal: AbortSignal,
): Promise<SpanChanges[]> {
  const before = spans.map(({ since }) => statesOf(since));
  const found = await Promise.all(
    tenants.map(async (tenant) => {
      const asked = spans.map(({ fromNs, toNs }, at) => {
        const held = before[at]?.[tenant]?.held;
        return held === undefined ? { fromNs, toNs } : { fromNs, toNs, since: held };
      });
      const told = await deps.ingester.changes({ tenant, spans: asked }, { signal });
      return Promise.all(
        asked.map(async (span, at) => {
          const state = await stateOf({ tenant, span, at, told }, deps, signal);
          const known = before[at]?.[tenant];
          const isSame = known?.deleted === state.deleted && known.stored === state.stored;
          return { state, changed: isSame ? told.spans[at]!.changed : [rangeOf(span)] };
        }),
      );
    }),
  );
  return spans.map((_, at) => {
    const own = found.map((ofTenant) => ofTenant[at]!);
    const states = tenants.map((tenant, i) => [tenant, own[i]!.state]);
    return {
      token: JSON.stringify(Object.fromEntries(states)),
      changed: uniteRanges(own.flatMap(({ changed }) => changed)),
    };
  });
}

async function stateOf(
  asked: { tenant: string; span: TimeRange; at: number; told: HeldChanges },
  { catalog, deletes, deletesOf = () => "" }: ChangesDeps,
  signal: AbortSignal,
): Promise<State> {
  const { tenant, span, at, told } = asked;
  const range = { tenant, ...rangeOf(span) };
  const { lookedFromNs } = told;
  const isOld = lookedFromNs !== undefined && span.fromNs < lookedFromNs + marginNs;
  const [filters = [], segments = []] = await Promise.all([
    deletes?.active(range, { signal }),
    isOld ? catalog.list(range, { signal }) : [],
  ]);
  const requests = deletesOf(tenant);
  // Rows of a request that was carried out are hidden no more, and gone.
  const deleted = [
    ...(requests === "" ? [] : [requests]),
    ...filters.map((filter) => filter.id ?? textOf(filter)),
  ];
  // Who answers a query may not know it yet: what it answers now is not to be believed later.
  const isNew = filters.some(({ nowNs }) => nowNs > BigInt(Date.now() - unknownMs) * 1_000_000n);
  return {
    held: told.spans[at]!.token,
    deleted: digest(isNew ? [...deleted, randomUUID()] : deleted),
    stored: digest(segments.map(({ id }) => id)),
  };
}

function statesOf(token: string | undefined): Readonly<Record<string, State>> {
  if (token === undefined) return {};
  try {
    return JSON.parse(token) as Record<string, State>;
  } catch {
    return {};
  }
}

function rangeOf({ fromNs, toNs }: TimeRange): TimeRange {
  return { fromNs, toNs };
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, one) => (typeof one === "bigint" ? `${one}n` : one));
}

/** Nothing for nothing. */
function digest(texts: readonly string[]): string {
  if (texts.length === 0) return "";
  const hash = createHash("sha256");
  for (const text of [...texts].sort()) hash.update(text).update("\0");
  return hash.digest("base64url").slice(0, 22);
}

/** The tokens of several ingesters as one. */
function joinTokens(tokens: ReadonlyMap<string, string>): string {
  return JSON.stringify([...tokens].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The tokens that one was joined from, by ingester; none when it is no such token. */
export function splitToken(token: string | undefined): ReadonlyMap<string, string> {
  if (token === undefined) return new Map();
  try {
    return new Map(JSON.parse(token) as [string, string][]);
  } catch {
    return new Map();
  }
}

/**
 * What ingesters tell of a span, as one. Where others answer than before it is not known what changed: what those have
 * that were not asked before was written at any time.
 */
export function uniteChanges(
  { fromNs, toNs }: AskedSpan,
  since: ReadonlyMap<string, string>,
  answers: ReadonlyMap<string, HeldChanges>,
  at: number,
): SpanChanges {
  const told = [...answers].map(([id, { spans }]) => [id, spans[at] as SpanChanges] as const);
  const token = joinTokens(new Map(told.map(([id, span]) => [id, span.token])));
  const areSame = since.size === answers.size && told.every(([id]) => since.has(id));
  if (!areSame) return { token, changed: [{ fromNs, toNs }] };
  return { token, changed: uniteRanges(told.flatMap(([, { changed }]) => changed)) };
}

/** Ranges in order, those that touch as one. */
function uniteRanges(ranges: readonly TimeRange[]): TimeRange[] {
  const sorted = [...ranges].sort((a, b) => (a.fromNs < b.fromNs ? -1 : 1));
  const united: { fromNs: bigint; toNs: bigint }[] = [];
  for (const { fromNs, toNs } of sorted) {
    const last = united.at(-1);
    if (last === undefined || fromNs > last.toNs) united.push({ fromNs, toNs });
    else if (toNs > last.toNs) last.toNs = toNs;
  }
  return united;
}
