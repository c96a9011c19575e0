import { invalidArgument, type PushEncoding, type PushFormat } from "@skald/model";

/** Which of the two JSON forms a path takes: `/loki/api/v1/push` or `/api/prom/push`. */
export type PushStyle = "v1" | "legacy";

/**
 * The form of a push body from its headers: JSON for `application/json`, snappy protobuf for any other media type.
 * Throws invalid_argument for a missing or malformed type and for an unknown encoding.
 */
export function parsePushHeaders(headers: {
  contentType: string | undefined;
  contentEncoding: string | undefined;
  style: PushStyle;
}): { format: PushFormat; encoding: PushEncoding } {
  const json = parseMediaType(headers.contentType ?? "") === "application/json";
  const jsonFormat = headers.style === "v1" ? "json" : "legacy_json";
  return {
    format: json ? jsonFormat : "protobuf",
    encoding: parseEncoding(headers.contentEncoding ?? ""),
  };
}

/** `snappy` says nothing new: protobuf bodies are raw snappy anyway, and JSON is never snappy. */
function parseEncoding(text: string): PushEncoding {
  if (text === "" || text === "snappy") return "identity";
  if (text === "gzip" || text === "deflate") return text;
  throw invalidArgument(`Content-Encoding "${text.slice(0, 64)}" not supported`);
}

const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
const mediaType = new RegExp(`^\\s*(${token})(/(${token})?)?\\s*`);
const parameter = new RegExp(`^;\\s*(${token})\\s*=\\s*(?:${token}|"(?:[^"\\\\]|\\\\.)*")\\s*`);

/** The type in lower case, after a check of its parameters; one semicolon may trail. */
function parseMediaType(header: string): string {
  const m = mediaType.exec(header);
  if (m === null) throw invalidArgument("mime: no media type");
  if (m[2] !== undefined && m[3] === undefined) {
    throw invalidArgument("mime: expected token after slash");
  }
  let rest = header.slice(m[0].length);
  if (rest !== "" && !rest.startsWith(";")) {
    throw invalidArgument("mime: unexpected content after media subtype");
  }
  const names = new Set<string>();
  while (rest !== "" && rest.trim() !== ";") {
    const p = parameter.exec(rest);
    if (p === null) throw invalidArgument("mime: invalid media parameter");
    const name = (p[1] as string).toLowerCase();
    if (names.has(name)) throw invalidArgument("mime: duplicate parameter name");
    names.add(name);
    rest = rest.slice(p[0].length);
  }
  return m[0].trim().toLowerCase();
}
