import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { errorCodeOf, refuseNewerVersion } from "@skald/model";

/** The file has no version so far: a later program that changes what it means adds the key `version`. */
const knownVersion = 1;

/**
 * Reads the tokens of an instance, ascending; undefined when there is no file, or it has no tokens. Throws `newer_version` for
 * one that a later program wrote.
 */
export async function readTokenFile(path: string): Promise<Uint32Array | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return parseTokens(path, text);
}

/** Writes the tokens of an instance as `{"tokens":[...]}`; after a crash the file has the old ones or the new ones. */
export async function writeTokenFile(path: string, tokens: Uint32Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const unfinished = `${path}.tmp`;
  const file = await open(unfinished, "w");
  try {
    await file.writeFile(`${JSON.stringify({ tokens: [...tokens] })}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(unfinished, path);
}

/** Deletes the file; it need not be there. */
export function deleteTokenFile(path: string): Promise<void> {
  return rm(path, { force: true });
}

/** A file that was cut short is like none: new tokens are better than no start. */
function parseTokens(path: string, text: string): Uint32Array | undefined {
  try {
    const { tokens, version } = JSON.parse(text) as { tokens?: unknown; version?: unknown };
    refuseNewerVersion(path, { found: version, known: knownVersion });
    if (!Array.isArray(tokens) || tokens.length === 0) return undefined;
    const isToken = (one: unknown) => Number.isInteger(one) && (one as number) >>> 0 === one;
    return tokens.every(isToken) ? Uint32Array.from(tokens as number[]).sort() : undefined;
  } catch (error) {
    if (errorCodeOf(error) === "newer_version") throw error;
    return undefined;
  }
}
