import { createHash, randomUUID } from "node:crypto";
import type {
  Catalog,
  ChangesRequest,
  Deletes,
  HeldChanges,
  HeldRows,
  SpanChanges,
} from "@skald/contracts";
import type { TimeRange } from "@skald/model";
import { uniteRanges } from "./held-changes.js";

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
