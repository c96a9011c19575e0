export interface NaiveLogfmt {
  readonly pairs: readonly (readonly [key: string, value: string])[];
  /** Text of the first syntax error. */
  readonly error?: string;
}

/** Reads `k=v k2="quoted" flag`; strict stops at the first error, else the rest of the word is skipped. */
export function readLogfmt(line: string, strict: boolean): NaiveLogfmt {
  const pairs: (readonly [string, string])[] = [];
  let error: string | undefined;
  let at = 0;
  while (true) {
    while (at < line.length && line[at]! <= " ") at++;
    if (at >= line.length) break;
    const fault = (offset: number, text: string) => {
      error ??= `logfmt syntax error at pos ${Buffer.byteLength(line.slice(0, offset)) + 1} : ${text}`;
      at = offset;
      while (at < line.length && line[at]! > " ") at++;
    };
    const key = line.slice(at, wordEnd(line, at));
    const stop = at + key.length;
    const c = line[stop];
    if (c === '"' || (c === "=" && key === "")) fault(stop, `unexpected '${c}'`);
    else if (key.includes("\ufffd")) fault(stop, "invalid key");
    else if (c !== "=") {
      pairs.push([key, ""]);
      at = stop;
    } else if (line[stop + 1] === '"') {
      const m = /^"(?:[^"\\]|\\.)*"/s.exec(line.slice(stop + 1));
      const value = m === null ? undefined : unquote(m[0]);
      if (m === null) fault(line.length, "unterminated quoted value");
      else if (value === undefined) fault(stop + 1 + m[0].length, "invalid quoted value");
      else {
        pairs.push([key, value.replaceAll("\ufffd", " ")]);
        at = stop + 1 + m[0].length;
      }
    } else {
      const value = line.slice(stop + 1, wordEnd(line, stop + 1));
      at = stop + 1 + value.length;
      const next = line[at];
      if (next === "=" || next === '"') fault(at, `unexpected '${next}'`);
      else pairs.push([key, value.replaceAll("\ufffd", " ")]);
    }
    if (strict && error !== undefined) return { pairs, error };
  }
  return error === undefined ? { pairs } : { pairs, error };
}

/** Offset of the blank, quote or equals sign that ends a word. */
function wordEnd(line: string, at: number): number {
  while (at < line.length && line[at]! > " " && line[at] !== "=" && line[at] !== '"') at++;
  return at;
}

/** Undoes the escapes of a quoted value; undefined when one is wrong. */
function unquote(quoted: string): string | undefined {
  const inner = quoted.slice(1, -1);
  if (!inner.includes("\\")) return inner;
  const simple: Readonly<Record<string, string | undefined>> = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "'": "'",
    b: "\b",
    f: "\f",
    n: "\n",
    r: "\r",
    t: "\t",
  };
  let out = "";
  for (let i = 0; i < inner.length; i++) {
    const c = inner[i] as string;
    if (c < " ") return undefined;
    if (c !== "\\") {
      out += c;
      continue;
    }
    const letter = inner[++i] as string;
    if (letter !== "u") {
      const plain = simple[letter];
      if (plain === undefined) return undefined;
      out += plain;
      continue;
    }
    const hex = /^[0-9a-fA-F]{4}/.exec(inner.slice(i + 1))?.[0];
    if (hex === undefined) return undefined;
    i += 4;
    const code = Number.parseInt(hex, 16);
    const low = /^\\u([dD][c-fC-F][0-9a-fA-F]{2})/.exec(inner.slice(i + 1))?.[1];
    if (code >= 0xd800 && code <= 0xdbff && low !== undefined) {
      out += String.fromCharCode(code, Number.parseInt(low, 16));
      i += 6;
    } else out += code >= 0xd800 && code <= 0xdfff ? "\ufffd" : String.fromCharCode(code);
  }
  return out;
}
