/** Texts in shared memory, which cross to a thread without a copy. */
export interface SharedTexts {
  /** One behind the other, as UTF-8. */
  readonly bytes: Uint8Array;
  /** Where each text ends in all of them together, in UTF-16 code units. */
  readonly ends: Uint32Array;
}

export function shareTexts(texts: readonly string[]): SharedTexts {
  const all = Buffer.from(texts.join(""));
  const bytes = new Uint8Array(new SharedArrayBuffer(all.length));
  bytes.set(all);
  const ends = new Uint32Array(new SharedArrayBuffer(4 * texts.length));
  let end = 0;
  texts.forEach((text, i) => {
    end += text.length;
    ends[i] = end;
  });
  return { bytes, ends };
}

/** Streams by number, with their canonical label texts, for another thread. */
export interface SharedStreams {
  readonly streams: Uint32Array;
  readonly texts: SharedTexts;
}

/** The texts of streams by number; empty for numbers that are not among them. */
export function textsByNumber({ streams, texts }: SharedStreams): string[] {
  const byNumber: string[] = [];
  for (const stream of streams) while (byNumber.length <= stream) byNumber.push("");
  readTexts(texts).forEach((text, i) => {
    byNumber[streams[i]!] = text;
  });
  return byNumber;
}

export function readTexts({ bytes, ends }: SharedTexts): string[] {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  return Array.from(ends, (end, i) => all.slice(ends[i - 1] ?? 0, end));
}
