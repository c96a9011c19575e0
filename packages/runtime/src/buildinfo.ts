import { readFileSync } from "node:fs";

/** What `GET .../status/buildinfo` answers, and the version of the product itself. */
export interface BuildInfo {
  /** The version of the API that clients may count on: they switch features on by it. */
  readonly version: string;
  readonly revision: string;
  readonly branch: string;
  readonly buildUser: string;
  readonly buildDate: string;
  /** The field keeps its name for clients; it holds the version of Node. */
  readonly goVersion: string;
  readonly productVersion: string;
}

/** Clients ask for at least 3.x before they use patterns, detected fields and the like. */
const apiVersion = "3.8.0";

/**
 * Reads the version from package.json and the rest from the environment of an image (`SKALD_REVISION`, `SKALD_BRANCH`,
 * `SKALD_BUILD_USER`, `SKALD_BUILD_DATE`), else from the checkout; empty where neither is there.
 */
export function buildInfo(env: NodeJS.ProcessEnv = process.env): BuildInfo {
  const checkout = env.SKALD_REVISION === undefined ? readCheckout() : undefined;
  return {
    version: apiVersion,
    revision: env.SKALD_REVISION ?? checkout?.revision ?? "",
    branch: env.SKALD_BRANCH ?? checkout?.branch ?? "",
    buildUser: env.SKALD_BUILD_USER ?? "",
    buildDate: env.SKALD_BUILD_DATE ?? "",
    goVersion: `node${process.versions.node}`,
    productVersion: productVersion(),
  };
}

function productVersion(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

/** Branch and commit of the checkout that this file runs from; undefined outside of one. */
function readCheckout(): { revision: string; branch: string } | undefined {
  const git = new URL("../../../.git", import.meta.url);
  try {
    const head = readFileSync(new URL("HEAD", git), "utf8").trim();
    const reference = /^ref: (refs\/heads\/(.+))$/.exec(head);
    if (reference === null) return { revision: head, branch: "" };
    const revision = readFileSync(new URL(reference[1] as string, git), "utf8").trim();
    return { revision, branch: reference[2] as string };
  } catch {
    return undefined;
  }
}
