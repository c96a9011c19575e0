import type { RowFilter } from "@skald/contracts";
import { parseSelector } from "@skald/logql/syntax";
import { dayNs, type Matcher, nsPerMs } from "@skald/model";

/** How long rows of a tenant are kept, as its limits say; periods in ms. */
export interface RetentionLimits {
  /** Of streams that no rule names; 0: for ever. */
  readonly retention_period: number;
  readonly retention_stream: readonly {
    readonly selector: string;
    readonly priority: number;
    readonly period: number;
  }[];
}

/** A rule with the streams that no rule before it names. */
interface RetentionRule {
  readonly matchers: readonly Matcher[];
  readonly unless: readonly (readonly Matcher[])[];
  /** ns; undefined: for ever */
  readonly periodNs: bigint | undefined;
}

/**
 * The rules of a tenant: of those that match a stream that of the highest priority counts, of several the one with the
 * shortest period, and `retention_period` when there is none.
 */
export class RetentionRules {
  readonly #rules: readonly RetentionRule[];

  /** Throws invalid_argument for a selector that cannot be read. */
  constructor({ retention_period, retention_stream }: RetentionLimits) {
    const sorted = [...retention_stream].sort(
      (a, b) => b.priority - a.priority || a.period - b.period,
    );
    const selectors = sorted.map(({ selector }) => parseSelector(selector));
    this.#rules = [
      ...sorted.map(({ period }, i) => ({
        matchers: selectors[i] as readonly Matcher[],
        unless: selectors.slice(0, i),
        periodNs: BigInt(period) * nsPerMs,
      })),
      {
        matchers: [],
        unless: selectors,
        periodNs: retention_period === 0 ? undefined : BigInt(retention_period) * nsPerMs,
      },
    ];
  }

  /** Rows from this time on are all kept; undefined when every row is, for ever. */
  keptFromNs(nowNs: bigint): bigint | undefined {
    const periods = this.#rules.flatMap(({ periodNs }) => (periodNs === undefined ? [] : periodNs));
    if (periods.length === 0) return undefined;
    return nowNs - periods.reduce((least, period) => (period < least ? period : least));
  }

  /** Which rules all rows of a day are past; undefined while that changes, because a rule's end is within the day. */
  stateOf(baseNs: bigint, nowNs: bigint): string | undefined {
    const ends = this.#rules.map(({ periodNs }) => nowNs - (periodNs ?? nowNs - beginNs));
    if (ends.some((endNs) => endNs > baseNs && endNs < baseNs + dayNs)) return undefined;
    return ends.map((endNs) => (endNs > baseNs ? "past" : "kept")).join();
  }

  /**
   * What is not kept of rows of which the last has a time: `all`, or the rows of some streams. A rule takes a segment when
   * the last of its rows is past it, so that the rows of a day go at once.
   */
  expired(lastNs: bigint, nowNs: bigint): "all" | readonly RowFilter[] {
    const isPast = ({ periodNs }: RetentionRule) =>
      periodNs !== undefined && lastNs < nowNs - periodNs;
    if (this.#rules.every(isPast)) return "all";
    return this.#rules.filter(isPast).map(({ matchers, unless }) => ({
      ...{ fromNs: beginNs, toNs: lastNs + 1n, nowNs, unless },
      log: { kind: "log", matchers, stages: [] },
    }));
  }
}

const beginNs = -(2n ** 63n);
