/** A run of text with one look. */
export interface Run {
  readonly text: string;
  /** Classes that begin with `a-`; `ctl` for a control character that is shown as a sign. */
  readonly className: string;
}

const colors = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const styles: Readonly<Record<number, string>> = {
  1: "bold",
  2: "dim",
  3: "italic",
  4: "underline",
};
const ends: Readonly<Record<number, readonly string[]>> = {
  ...{ 22: ["bold", "dim"], 23: ["italic"], 24: ["underline"], 39: colors },
};

const special =
  /\x1b\[([\d;:]*)([A-Za-z])|[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u202a-\u202e\u2066-\u2069]/g;

/** Whether a text has anything that `runsOf` would show in another way. */
export function isPlain(text: string): boolean {
  return text.search(special) < 0;
}

/** A text cut where its ANSI colours change. Other control characters, and those that turn the direction, become signs. */
export function runsOf(text: string): Run[] {
  const runs: Run[] = [];
  let active = new Set<string>();
  let done = 0;
  const add = (part: string, className: string) => {
    if (part !== "") runs.push({ text: part, className });
  };
  const look = () => [...active].map((name) => `a-${name}`).join(" ");
  for (const match of text.matchAll(special)) {
    add(text.slice(done, match.index), look());
    done = match.index + match[0].length;
    if (match[2] === "m") active = applied(active, match[1] ?? "");
    else if (match[2] === undefined) add(signOf(match[0]), "ctl");
  }
  add(text.slice(done), look());
  return runs;
}

function signOf(char: string): string {
  const code = char.charCodeAt(0);
  if (code === 0x1b) return "␛";
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "␡" : "·";
}

function applied(before: ReadonlySet<string>, codes: string): Set<string> {
  const active = new Set(before);
  const list = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < list.length; at++) {
    const code = list[at] ?? 0;
    if (code === 0) active.clear();
    else if (code === 38 || code === 48) at += list[at + 1] === 5 ? 2 : 4;
    else if (styles[code] !== undefined) active.add(styles[code]);
    else if (ends[code] !== undefined) for (const name of ends[code]) active.delete(name);
    else setColor(active, code);
  }
  return active;
}

function setColor(active: Set<string>, code: number): void {
  const color = colors[code >= 90 ? code - 90 : code - 30];
  if (color === undefined || (code >= 38 && code < 90)) return;
  for (const other of colors) active.delete(other);
  active.add(color);
}
