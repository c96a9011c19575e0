import type { RowFilter } from "@skald/contracts";
import { parseSelector } from "@skald/logql";
import { dayNs, type Matcher, nsPerMs } from "@skald/model";

/** A tenant's limits on how long rows are kept; periods in ms. */
export interface RetentionLimits {
  /** The period of streams that no rule names; 0: forever. */
  readonly retention_period: number;
  readonly retention_stream: readonly {
    readonly selector: string;
    readonly priority: number;
    readonly period: number;
  }[];
}

/** A rule for the streams that no rule before it names. */
interface RetentionRule {
  readonly matchers: readonly Matcher[];
  readonly unless: readonly (readonly Matcher[])[];
  /** ns; undefined: forever */
  readonly periodNs: bigint | undefined;
}

/**
 * The retention rules of a tenant. Among the rules that match a stream the one with the highest priority counts, then the one with the
 * shortest period. `retention_period` counts when no rule matches.
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

  /** All rows from this time on are kept; undefined when all rows are kept forever. */
  keptFromNs(nowNs: bigint): bigint | undefined {
    const periods = this.#rules.flatMap(({ periodNs }) => (periodNs === undefined ? [] : periodNs));
    if (periods.length === 0) return undefined;
    return nowNs - periods.reduce((least, period) => (period < least ? period : least));
  }

  /** Names the rules whose period all rows of a day have passed; undefined while the end of a period lies within the day. */
  stateOf(baseNs: bigint, nowNs: bigint): string | undefined {
    const ends = this.#rules.map(({ periodNs }) => nowNs - (periodNs ?? nowNs - beginNs));
    if (ends.some((endNs) => endNs > baseNs && endNs < baseNs + dayNs)) return undefined;
    return ends.map((endNs) => (endNs > baseNs ? "past" : "kept")).join();
  }

  /**
   * Which rows of a segment are too old, by the time of its last row: `all`, or the rows of some streams. A rule applies to a segment once
   * its last row is too old, so that the rows of a day go together.
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
