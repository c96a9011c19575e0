import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** Reads the tokens of an instance, ascending; undefined when there is no file, or it has no tokens. */
export async function readTokenFile(path: string): Promise<Uint32Array | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return parseTokens(text);
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
function parseTokens(text: string): Uint32Array | undefined {
  try {
    const { tokens } = JSON.parse(text) as { tokens?: unknown };
    if (!Array.isArray(tokens) || tokens.length === 0) return undefined;
    const isToken = (one: unknown) => Number.isInteger(one) && (one as number) >>> 0 === one;
    return tokens.every(isToken) ? Uint32Array.from(tokens as number[]).sort() : undefined;
  } catch {
    return undefined;
  }
}
