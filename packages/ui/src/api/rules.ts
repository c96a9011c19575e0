import { ApiError, call, callJson } from "./client.js";

export interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly state: string;
  readonly value: string;
  readonly activeAt: string;
}

export interface Rule {
  readonly type: "alerting" | "recording";
  readonly name: string;
  readonly query: string;
  readonly state?: string;
  readonly health: string;
  readonly lastError?: string;
  readonly lastEvaluation: string;
  readonly evaluationTime: number;
  readonly alerts?: readonly Alert[];
}

export interface RuleGroup {
  readonly name: string;
  /** The namespace. */
  readonly file: string;
  readonly interval: number;
  readonly rules: readonly Rule[];
}

/** The groups of rules as they stand; undefined where another process has them. */
export async function fetchRules(signal?: AbortSignal): Promise<readonly RuleGroup[] | undefined> {
  try {
    const { data } = await callJson<{ data: { groups: RuleGroup[] } }>("prometheus/api/v1/rules", {
      signal,
    });
    return data.groups;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** A group as YAML. */
export async function fetchGroup(namespace: string, group: string): Promise<string> {
  return (
    await call(rulesPath(namespace, group), { headers: { accept: "application/yaml" } })
  ).text();
}

/** Sets a group of a namespace, given as YAML. */
export async function saveGroup(namespace: string, yaml: string): Promise<void> {
  await call(rulesPath(namespace), {
    method: "POST",
    headers: { "content-type": "application/yaml" },
    body: yaml,
  });
}

export async function deleteGroup(namespace: string, group: string): Promise<void> {
  await call(rulesPath(namespace, group), { method: "DELETE" });
}

function rulesPath(...names: readonly string[]): string {
  return ["loki/api/v1/rules", ...names.map(encodeURIComponent)].join("/");
}
