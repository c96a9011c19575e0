import { invalidArgument, type PushEncoding, type PushFormat } from "@skald/model";

/** What a path takes: `/loki/api/v1/push`, `/api/prom/push` with another JSON form, or `/otlp/v1/logs`. */
export type PushStyle = "v1" | "legacy" | "otlp";

/**
 * The form of a push body from its headers: JSON for `application/json`, snappy protobuf for any other media type; OTLP takes
 * no other type, and no parameters. Throws invalid_argument for a missing or malformed type and for an unknown encoding.
 */
export function parsePushHeaders(headers: {
  contentType: string | undefined;
  contentEncoding: string | undefined;
  style: PushStyle;
}): { format: PushFormat; encoding: PushEncoding } {
  if (headers.style === "otlp") return parseOtlpHeaders(headers);
  const { contentType = "" } = headers;
  const known = commonTypes.has(contentType) ? contentType : parseMediaType(contentType);
  const json = known === "application/json";
  const jsonFormat = headers.style === "v1" ? "json" : "legacy_json";
  return {
    format: json ? jsonFormat : "protobuf",
    encoding: parseEncoding(headers.contentEncoding ?? ""),
  };
}

/** What agents send: nothing of it is left to be parsed. */
const commonTypes: ReadonlySet<string> = new Set(["application/x-protobuf", "application/json"]);

function parseOtlpHeaders(headers: {
  contentType: string | undefined;
  contentEncoding: string | undefined;
}): { format: PushFormat; encoding: PushEncoding } {
  const { contentType = "", contentEncoding: encoding = "" } = headers;
  const format = otlpFormats.get(contentType);
  if (format === undefined) {
    throw invalidArgument(
      `content type: ${contentType.slice(0, 64)} is not supported; use application/x-protobuf or application/json`,
    );
  }
  if (encoding === "") return { format, encoding: "identity" };
  if (encoding === "gzip" || encoding === "zstd" || encoding === "lz4") return { format, encoding };
  throw invalidArgument(
    `unsupported content encoding ${encoding.slice(0, 64)}: only gzip, lz4 and zstd are supported`,
  );
}

const otlpFormats: ReadonlyMap<string, PushFormat> = new Map([
  ["application/x-protobuf", "otlp_protobuf"],
  ["application/json", "otlp_json"],
]);

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
