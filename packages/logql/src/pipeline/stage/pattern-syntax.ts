import { invalidArgument } from "@skald/model";

/** One piece of a pattern; the name `_` captures without a label. */
export type PatternPiece =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "capture"; readonly name: string };

/** Parses `<ip> - <_> "<method> <path>"`: literals and captures by turns. Throws invalid_argument. */
export function parsePattern(pattern: string): readonly PatternPiece[] {
  const pieces: PatternPiece[] = [];
  let from = 0;
  for (const m of pattern.matchAll(/<([A-Za-z_][A-Za-z0-9_]*)>/g)) {
    if (m.index > from) pieces.push({ kind: "literal", text: pattern.slice(from, m.index) });
    const name = m[1]!;
    const before = pieces.at(-1);
    if (before?.kind === "capture") {
      throw invalidArgument(
        `found consecutive capture '<${before.name}><${name}>': invalid expression`,
      );
    }
    pieces.push({ kind: "capture", name });
    from = m.index + m[0].length;
  }
  if (from < pattern.length) pieces.push({ kind: "literal", text: pattern.slice(from) });
  return pieces;
}

/** The pattern of a `pattern` stage: it needs a named capture, and no name twice. */
export function parseCapturingPattern(pattern: string): readonly PatternPiece[] {
  const pieces = parsePattern(pattern);
  const names = new Set<string>();
  for (const piece of pieces) {
    if (piece.kind !== "capture" || piece.name === "_") continue;
    if (names.has(piece.name)) {
      throw invalidArgument(`duplicate capture name (${piece.name}): invalid expression`);
    }
    names.add(piece.name);
  }
  if (names.size === 0) throw invalidArgument("at least one capture is required");
  return pieces;
}

/** The pattern of a `|>` line filter: its captures have no names. */
export function parseMatchingPattern(pattern: string): readonly PatternPiece[] {
  const pieces = parsePattern(pattern);
  if (pieces.some((piece) => piece.kind === "capture" && piece.name !== "_")) {
    throw invalidArgument("named captures are not allowed");
  }
  return pieces;
}
