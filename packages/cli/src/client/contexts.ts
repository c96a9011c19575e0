import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { parse, stringify } from "yaml";
import { Failure } from "../shell/command.js";
import { connectionFlags } from "./settings.js";

type Env = Readonly<Record<string, string | undefined>>;

/** Named connections. Passwords and tokens are not in them, but the name of a file or of a variable. */
export interface Contexts {
  readonly current: string | undefined;
  readonly contexts: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Keys of a context that name where a secret is. */
const secretKeys = ["password", "bearer-token"] as const;
export const contextKeys: readonly string[] = [
  ...Object.keys(connectionFlags).filter(
    (name) => name !== "context" && !(secretKeys as readonly string[]).includes(name),
  ),
  ...secretKeys.flatMap((name) => [`${name}-file`, `${name}-env`]),
].filter((name, i, all) => all.indexOf(name) === i);

/** `SKALD_CONFIG`, or `skald/config.yaml` in the folder of configurations. */
export function contextsPath(env: Env): string {
  const home = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config");
  return env.SKALD_CONFIG || join(home, "skald", "config.yaml");
}

/** The contexts of the file; none if there is no file. */
export function readContexts(env: Env): Contexts {
  const path = contextsPath(env);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT")
      return { current: undefined, contexts: {} };
    throw new Failure("usage", `${path}: ${(error as Error).message}`);
  }
  let found: { current?: unknown; contexts?: unknown } | null;
  try {
    found = parse(text);
  } catch (error) {
    throw new Failure("usage", `${path}: ${(error as Error).message}`);
  }
  const { current, contexts = {} } = found ?? {};
  for (const [name, context] of Object.entries(contexts as object)) {
    const unknown = Object.keys(context ?? {}).find((key) => !contextKeys.includes(key));
    if (unknown === undefined) continue;
    const isSecret = (secretKeys as readonly string[]).includes(unknown);
    const hint = isSecret ? `; name a file or a variable: ${unknown}-file, ${unknown}-env` : "";
    throw new Failure("usage", `${path}: context ${name} has an unknown key ${unknown}${hint}`);
  }
  return {
    current: typeof current === "string" ? current : undefined,
    contexts: contexts as Contexts["contexts"],
  };
}

export function writeContexts(env: Env, contexts: Contexts): void {
  const path = contextsPath(env);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, stringify(contexts), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Values of flags that a context gives: the one that is named, or the current one. */
export function contextValues(
  name: string | undefined,
  env: Env,
): Readonly<Record<string, string>> {
  const { current, contexts } = readContexts(env);
  const wanted = name ?? current;
  if (wanted === undefined) return {};
  const context = contexts[wanted];
  if (context === undefined) {
    const known = Object.keys(contexts).join(", ") || "none";
    throw new Failure("usage", `there is no context ${wanted}; there are: ${known}`);
  }
  const values: Record<string, string> = { ...context };
  for (const secret of secretKeys) {
    const file = values[`${secret}-file`];
    const variable = values[`${secret}-env`];
    if (secret === "password" && file !== undefined) values[secret] = readSecret(file);
    if (variable !== undefined && env[variable] !== undefined) values[secret] = env[variable];
  }
  return values;
}

function readSecret(path: string): string {
  try {
    return readFileSync(path, "utf8").trimEnd();
  } catch (error) {
    throw new Failure("usage", `password-file: ${(error as Error).message}`);
  }
}
