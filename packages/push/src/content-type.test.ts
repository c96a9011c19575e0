import { describe, expect, it } from "@jest/globals";
import { parsePushHeaders } from "./decode.js";

const parse = (
  contentType: string | undefined,
  contentEncoding?: string,
  style: "v1" | "legacy" = "v1",
) => parsePushHeaders({ contentType, contentEncoding, style });

describe("parsePushHeaders", () => {
  it.each([
    ["application/json", "json"],
    ["Application/JSON", "json"],
    ["application/json; charset=utf-8", "json"],
    ["application/json;charset=utf-8", "json"],
    ['application/json ; charset="utf-8" ; x=y', "json"],
    ["application/json;", "json"],
    ["application/json ; ", "json"],
    ["application/x-protobuf", "protobuf"],
    ["application/x-protobuf; charset=x", "protobuf"],
    ["text/plain", "protobuf"],
    ["json", "protobuf"],
  ])("%s is %s", (type, format) => {
    expect(parse(type)).toEqual({ format, encoding: "identity" });
  });

  it("takes JSON of the legacy path in its form", () => {
    expect(parse("application/json", "", "legacy").format).toBe("legacy_json");
    expect(parse("text/plain", "", "legacy").format).toBe("protobuf");
  });

  it.each([
    [undefined, "mime: no media type"],
    ["", "mime: no media type"],
    [" ", "mime: no media type"],
    [";", "mime: no media type"],
    ["application/", "mime: expected token after slash"],
    ["application/json x", "mime: unexpected content after media subtype"],
    ["application/json;;;", "mime: invalid media parameter"],
    ["application/json; charset", "mime: invalid media parameter"],
    ["application/json; a=b; A=c", "mime: duplicate parameter name"],
  ])("refuses %j", (type, message) => {
    expect(() => parse(type)).toThrow(message);
  });

  it.each([
    [undefined, "identity"],
    ["", "identity"],
    ["snappy", "identity"],
    ["gzip", "gzip"],
    ["deflate", "deflate"],
  ])("encoding %j is %s", (encoding, want) => {
    expect(parse("text/plain", encoding).encoding).toBe(want);
  });

  it.each(["br", "zstd", "GZIP", "gzip, gzip"])("refuses encoding %s", (encoding) => {
    expect(() => parse("text/plain", encoding)).toThrow(
      `Content-Encoding "${encoding}" not supported`,
    );
  });
});
