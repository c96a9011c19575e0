/** The head of a request that has nothing in it but what every agent sends. */
export interface PlainHead {
  /** As sent; no query string. */
  readonly path: string;
  /** By their names in lower case, without space around values; none is there twice. */
  readonly headers: ReadonlyMap<string, string>;
  /** Declared length of the body. */
  readonly bodyBytes: number;
  /** Length of the head itself, with the empty line that ends it. */
  readonly headBytes: number;
}

/** A longer head is no plain one. */
const maxPlainBytes = 8 * 1024;
const headEnd = Buffer.from("\r\n\r\n");
const method = "POST ";
const version = " HTTP/1.1";

/**
 * Reads the head of a POST at the beginning of some bytes. Undefined where it is not all there, or where anything is unusual,
 * be it right or wrong: a real parser is to look at it then.
 */
export function readPlainHead(bytes: Buffer): PlainHead | undefined {
  const end = bytes.indexOf(headEnd);
  if (end < 0 || end > maxPlainBytes) return undefined;
  const text = bytes.toString("latin1", 0, end);
  if (!text.startsWith(method) || unusual.test(text)) return undefined;
  const lineEnd = text.indexOf("\r\n");
  if (lineEnd < 0 || !text.startsWith(version, lineEnd - version.length)) return undefined;
  const path = text.slice(method.length, lineEnd - version.length);
  const headers = readHeaders(text, lineEnd + 2);
  if (headers?.has("host") !== true || !plainPath.test(path)) return undefined;
  const length = headers.get("content-length");
  if (length === undefined || !/^\d{1,9}$/.test(length)) return undefined;
  return { path, headers, bodyBytes: Number(length), headBytes: end + headEnd.length };
}

/** Control characters, ends of lines that are none, and the space that is none here. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const unusual = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\xa0]|\r(?!\n)|(?<!\r)\n/;
const plainPath = /^\/[\w/.-]*$/;
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Headers that change how a message or a connection goes on, and those of browsers. */
const special = new Set([
  ...["transfer-encoding", "expect", "upgrade", "trailer", "te", "keep-alive"],
  ...["origin", "sec-fetch-site"],
]);

function readHeaders(text: string, from: number): Map<string, string> | undefined {
  const headers = new Map<string, string>();
  for (let at = from; at < text.length; ) {
    const next = text.indexOf("\r\n", at);
    const end = next < 0 ? text.length : next;
    const colon = text.indexOf(":", at);
    if (colon < 0 || colon > end) return undefined;
    const name = text.slice(at, colon).toLowerCase();
    const value = text.slice(colon + 1, end).trim();
    if (!token.test(name) || headers.has(name) || special.has(name)) return undefined;
    if (name === "connection" && value.toLowerCase() !== "keep-alive") return undefined;
    headers.set(name, value);
    at = end + 2;
  }
  return headers;
}
