import { parseQuery, printQuery } from "@skald/logql";
import { invalidArgument } from "@skald/model";
import type { JobHandler, JobOptions, WorkerPool } from "@skald/runtime";
import { readGroup, readGroups, writeYaml } from "./group-yaml.js";
import { type CheckedGroup, checkGroups, type RuleGroup } from "./rule-group.js";

interface TextOptions {
  /** The tenant that pays for the work. */
  readonly tenant: string;
  readonly signal: AbortSignal;
}

/**
 * Reads and writes texts of rules on threads: a client may send a megabyte of YAML and expressions, and a namespace holds
 * many groups.
 */
export class RuleTexts {
  readonly #pool: Pick<WorkerPool, "run">;

  constructor(pool: Pick<WorkerPool, "run">) {
    this.#pool = pool;
  }

  /** Reads one group and checks its rules. Throws invalid_argument for a text that is no group. */
  readGroup(text: Uint8Array, options: TextOptions): Promise<CheckedGroup> {
    return this.#read("read_rule_group", text, options);
  }

  /** Reads a file of groups. Throws invalid_argument also for a rule that is wrong. */
  readGroups(text: Uint8Array, options: TextOptions): Promise<readonly RuleGroup[]> {
    return this.#read("read_rule_groups", text, options);
  }

  /** Writes what `plainGroup` made, or maps and lists of it, as YAML. */
  write(plain: unknown, options: TextOptions): Promise<string> {
    return this.#run("write_rules", plain, { ...options, cost: 0 });
  }

  #read<T>(name: RuleJobName, text: Uint8Array, options: TextOptions): Promise<T> {
    // It is copied, because it may be part of a larger buffer.
    const payload = new Uint8Array(text);
    return this.#run(name, payload, { ...options, cost: text.length, transfer: [payload.buffer] });
  }

  #run<T>(
    name: RuleJobName,
    payload: unknown,
    { tenant, cost, ...options }: TextOptions & Pick<JobOptions, "transfer"> & { cost: number },
  ): Promise<T> {
    const share = { tenant, actors: [], cost };
    return this.#pool.run<T>(name, payload, { lane: "query", share, ...options });
  }
}

/** The jobs of `RuleTexts`, for a worker thread. */
export const ruleJobs = {
  read_rule_group: (text: Uint8Array) => {
    const group = readGroup(textOf(text));
    const problems = checkGroups([group]);
    return { value: { group: problems.length === 0 ? withQueries(group) : group, problems } };
  },
  read_rule_groups: (text: Uint8Array) => {
    const groups = readGroups(textOf(text));
    const [problem] = checkGroups(groups);
    if (problem !== undefined) throw invalidArgument(problem);
    return { value: groups.map(withQueries) };
  },
  write_rules: (plain: unknown) => ({ value: writeYaml(plain) }),
} as const satisfies Record<string, JobHandler>;

export type RuleJobName = keyof typeof ruleJobs;

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("utf8");
}

function withQueries(group: RuleGroup): RuleGroup {
  const rules = group.rules.map((rule) => ({ ...rule, query: printQuery(parseQuery(rule.expr)) }));
  return { ...group, rules };
}
