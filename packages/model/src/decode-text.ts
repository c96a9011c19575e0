const lenient = new TextDecoder("utf-8", { ignoreBOM: true });
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

/** Bytes as text; each byte that is not UTF-8 is one U+FFFD, as Go shows it. */
export function decodeText(bytes: Uint8Array): string {
  const text = lenient.decode(bytes);
  return text.includes("\ufffd") ? decodeCharacters(bytes) : text;
}

function decodeCharacters(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at] as number;
    const length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    try {
      text += strict.decode(bytes.subarray(at, at + length));
      at += length;
    } catch {
      text += "\ufffd";
      at++;
    }
  }
  return text;
}
