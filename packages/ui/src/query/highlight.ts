import { classOf, tokenize } from "@skald/logql/syntax";

/** A run of text with the class that colours it; an empty class for blanks. */
export interface Piece {
  readonly text: string;
  readonly className: string;
}

/** A query cut into coloured pieces, which together are the whole text. The part that is wrong is underlined. */
export function highlight(
  text: string,
  wrong?: { readonly start: number; readonly end: number },
): Piece[] {
  const pieces: Piece[] = [];
  let done = 0;
  const add = (end: number, className: string) => {
    if (end > done) pieces.push({ text: text.slice(done, end), className });
    done = Math.max(done, end);
  };
  for (const { type, start, end } of tokenize(text, { comments: true })) {
    if (type === "$end") break;
    add(start, "");
    const isWrong = wrong !== undefined && start < wrong.end && end > wrong.start;
    add(end, `t-${classOf(type)}${isWrong ? " t-wrong" : ""}`);
  }
  add(text.length, "");
  return pieces;
}
