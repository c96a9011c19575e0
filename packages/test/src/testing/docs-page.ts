import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A page of the documents, by its name below `docs`. */
export function docsPage(name: string): string {
  return readFileSync(fileURLToPath(new URL(`../../../../docs/${name}`, import.meta.url)), "utf8");
}

/**
 * The first block of code of a page behind a text, such as a heading, with other texts in place of some of it. Throws where the
 * page has no such block, or one of these texts is not in it.
 */
export function docsCode(
  name: string,
  behind: string,
  changes: Readonly<Record<string, string>> = {},
): string {
  const page = docsPage(name);
  const from = page.indexOf(behind);
  const [, block] = /```[^\n]*\n(.*?)```/s.exec(from < 0 ? "" : page.slice(from)) ?? [];
  if (block === undefined) throw new Error(`docs/${name} has no code behind ${behind}`);
  return Object.entries(changes).reduce((text, [old, other]) => {
    if (!text.includes(old))
      throw new Error(`docs/${name}: the code behind ${behind} lacks ${old}`);
    return text.replaceAll(old, other);
  }, block);
}
