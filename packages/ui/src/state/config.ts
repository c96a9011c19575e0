import { signal } from "@preact/signals";
import { callJson } from "../api/client.js";
import { setSourceLabels } from "../api/lines.js";

/** What this server is and can do. */
export interface Config {
  readonly version: string;
  readonly title: string;
  readonly multiTenant: boolean;
  readonly patterns: boolean;
  readonly deletes: boolean;
  readonly rules: boolean;
  readonly parquet: boolean;
  readonly targets: readonly string[];
  /** Fields whose values are links; `{value}` in the address is the value. */
  readonly links: readonly { readonly field: string; readonly url: string }[];
}

const plain: Config = {
  ...{ version: "", title: "Skald", multiTenant: false, patterns: true, deletes: false },
  ...{ rules: false, parquet: false, targets: [], links: [] },
};

export const config = signal<Config>(plain);

/** Most lines of one answer, by the limits of the tenant. */
export const linesMax = signal(5000);

/** Asks the server what it is; one that does not say is taken for the simplest. */
export async function loadConfig(): Promise<void> {
  try {
    const found = await callJson<Partial<Config>>("ui/config.json");
    config.value = { ...plain, ...found, title: found.title || plain.title };
  } catch {
    config.value = plain;
  }
}

/** Asks for the limits that the page must know; without an answer the defaults of the server stand. */
export async function loadLimits(): Promise<void> {
  try {
    const { limits } = await callJson<{ limits: Record<string, unknown> }>(
      "loki/api/v1/drilldown-limits",
    );
    const { max_entries_limit_per_query: most, discover_service_name: names } = limits;
    if (typeof most === "number" && most > 0) linesMax.value = most;
    if (Array.isArray(names)) setSourceLabels(names.filter((name) => typeof name === "string"));
  } catch {
    // A server without the endpoint has the defaults.
  }
}
