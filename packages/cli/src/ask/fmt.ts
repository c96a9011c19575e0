import { readFileSync, statSync, writeFileSync } from "node:fs";
import { formatQuery, parseErrorDetail, parseQuery } from "@skald/logql/syntax";
import { readQuery } from "../client/session.js";
import { type AnyCommand, command, exits, flag, type Io } from "../shell/command.js";

export const fmt: AnyCommand = command({
  args: "[logql-or-files...]",
  says: "Formats a query, that of stdin, or files with one query each, in place. A mistake is shown with its place and a suggestion. It needs no server.",
  flags: { check: flag.boolean("changes nothing; the exit code is 1 if a query is not formatted") },
  run: async ({ args, flags }, io) => {
    const isFiles = args.length > 0 && args.every(isFile);
    if (!isFiles) {
      const text = args.length === 0 ? await readQuery([], io) : args.join(" ");
      const good = formatOrTell(text, "", io);
      if (good === undefined) return exits.found;
      if (!flags.check) io.stdout.write(`${good}\n`);
      return flags.check && good !== text.trim() ? exits.found : exits.done;
    }
    let code: number = exits.done;
    for (const path of args) {
      const text = readFileSync(path, "utf8");
      const good = formatOrTell(text, `${path}: `, io);
      if (good === text.trimEnd()) continue;
      if (flags.check || good === undefined) code = exits.found;
      if (good === undefined) continue;
      io.stdout.write(`${path}\n`);
      if (!flags.check) writeFileSync(path, `${good}\n`);
    }
    return code;
  },
});

/** The query, formatted; undefined for one with a mistake, which is written to stderr. */
function formatOrTell(text: string, place: string, { stderr }: Io): string | undefined {
  const mistake = mistakeOf(text);
  if (mistake === undefined) return formatQuery(parseQuery(text.trim()));
  stderr.write(`${place}${mistake}\n`);
  return undefined;
}

/** What is wrong with a query, its place with a caret, and a suggestion; undefined for a good one. */
export function mistakeOf(text: string): string | undefined {
  try {
    parseQuery(text.trim());
    return undefined;
  } catch (error) {
    const detail = parseErrorDetail(error);
    if (detail === undefined) return (error as Error).message;
    const { line, column } = detail.position;
    const at = line === 1 ? `col ${column}` : `line ${line}, col ${column}`;
    return `${at}: ${detail.reason}\n${detail.hint.replace(/^/gm, "  ")}`;
  }
}

function isFile(text: string): boolean {
  return statSync(text, { throwIfNoEntry: false })?.isFile() === true;
}
