import { describe, expect, it } from "@jest/globals";
import snappy from "snappy";
import { noTimestampSeconds, type RawPushLimits } from "./index.js";
import { forms } from "./testing/forms.js";
import {
  type PlainPush,
  pushRequestType,
  plainRow as row,
  toPlain,
  wideLimits,
} from "./testing/push-oracle.js";

const utf8 = (text: string) => new TextEncoder().encode(text);
const time = 1_700_000_000_123_456_789n;

describe.each(forms)("protobuf push, %s", (_name, kernels) => {
  const decode = (message: Uint8Array, limits: RawPushLimits = wideLimits) =>
    toPlain(kernels.decodeSnappyProtobufPush(snappy.compressSync(Buffer.from(message)), limits));

  it("decodes streams, entries and metadata", () => {
    const message = pushRequestType.encode({
      streams: [
        {
          labels: '{a="b"}',
          hash: 7,
          entries: [
            {
              timestamp: { seconds: 1_700_000_000, nanos: 123_456_789 },
              line: utf8("übung"),
              structuredMetadata: [
                { name: "k", value: "v" },
                { name: "", value: "w" },
              ],
              parsed: [{ name: "x", value: "y" }],
            },
            { timestamp: { seconds: -5, nanos: 1 }, line: utf8("") },
          ],
        },
        { labels: "{}", entries: [] },
      ],
      format: "f",
    });
    expect(decode(message.finish())).toEqual([
      {
        labels: '{a="b"}',
        rows: [
          row(time, "übung", [
            ["k", "v"],
            ["", "w"],
          ]),
          { seconds: -5, nanos: 1, line: "", pairs: [] },
        ],
      },
      { labels: "{}", rows: [] },
    ]);
  });

  const cases: [string, number[], PlainPush[]][] = [
    ["an empty message", [], []],
    [
      "an entry without a timestamp",
      [10, 2, 18, 0],
      [{ labels: "", rows: [{ seconds: noTimestampSeconds, nanos: 0, line: "", pairs: [] }] }],
    ],
    [
      "an empty timestamp",
      [10, 4, 18, 2, 10, 0],
      [{ labels: "", rows: [{ seconds: 0, nanos: 0, line: "", pairs: [] }] }],
    ],
    [
      "labels after entries, the last wins",
      [10, 8, 18, 0, 10, 1, 65, 10, 1, 66],
      [{ labels: "B", rows: [{ seconds: noTimestampSeconds, nanos: 0, line: "", pairs: [] }] }],
    ],
    [
      "timestamps merge",
      [10, 14, 18, 12, 10, 4, 8, 1, 16, 2, 10, 4, 16, 3, 16, 4],
      [{ labels: "", rows: [{ seconds: 1, nanos: 4, line: "", pairs: [] }] }],
    ],
    [
      "unknown fields of every wire type",
      [40, 1, 49, 1, 2, 3, 4, 5, 6, 7, 8, 58, 1, 9, 69, 1, 2, 3, 4, 75, 8, 1, 76, 10, 0],
      [{ labels: "", rows: [] }],
    ],
    ["a tag padded with a zero byte", [138, 0, 0], [{ labels: "", rows: [] }]],
    [
      "invalid UTF-8 in a line",
      [10, 6, 18, 4, 18, 2, 255, 254],
      [
        {
          labels: "",
          rows: [{ seconds: noTimestampSeconds, nanos: 0, line: "\xff\xfe", pairs: [] }],
        },
      ],
    ],
  ];
  it.each(cases)("reads %s", (_case, message, want) => {
    expect(decode(Uint8Array.from(message))).toEqual(want);
  });

  const tenBytes = (last: number) => [255, 255, 255, 255, 255, 255, 255, 255, 255, last];
  it.each([
    ["a stream that breaks off", [10, 5, 10], "unexpected end"],
    ["a string longer than its stream", [10, 2, 10, 9], "unexpected end"],
    ["a length beyond 32 bits", [10, 255, 255, 255, 255, 127], "unexpected end"],
    ["streams as a varint", [8, 1], "wrong wire type"],
    ["a line as fixed32", [10, 7, 18, 5, 21, 1, 2, 3, 4], "wrong wire type"],
    ["seconds as bytes", [10, 6, 18, 4, 10, 2, 10, 0], "wrong wire type"],
    ["field number 0", [0, 1], "illegal field tag"],
    ["wire type 6", [46], "illegal field tag"],
    ["a varint of 11 bytes", [...tenBytes(255), 1], "varint is too long"],
    ["a varint beyond 64 bits", [40, ...tenBytes(2)], "varint is too long"],
    ["an end of group alone", [44], "groups"],
    ["a group that is not closed", [43], "unexpected end"],
    ["groups nested too deeply", Array.from({ length: 80 }, () => 43), "groups"],
    ["negative nanos", [10, 15, 18, 13, 10, 11, 16, ...tenBytes(1)], "nanos"],
    ["nanos of a second", [10, 10, 18, 8, 10, 6, 16, 128, 148, 235, 220, 3], "nanos"],
    ["seconds out of range", [10, 11, 18, 9, 10, 7, 8, 255, 255, 255, 255, 255, 127], "seconds"],
  ])("refuses %s", (_case, message, text) => {
    const decoding = () => decode(Uint8Array.from(message));
    expect(decoding).toThrow(text);
    expect(decoding).toThrow(expect.objectContaining({ code: "corrupt" }));
  });

  it.each([
    ["streams", { maxStreams: 1 }],
    ["entries", { maxRows: 2 }],
    ["structured metadata pairs", { maxPairs: 2 }],
    ["bytes decompressed", { maxDecodedBytes: 20 }],
  ])("refuses more %s than the limit", (text, limit) => {
    const stream = [10, 6, 18, 4, 26, 0, 26, 0];
    const one = [...stream, 10, 4, 18, 2, 26, 0, 10, 2, 18, 0];
    const tooMany = () =>
      decode(Uint8Array.from([...one, 10, 0, 10, 0]), { ...wideLimits, ...limit });
    expect(tooMany).toThrow(text);
    expect(tooMany).toThrow(expect.objectContaining({ code: "too_large" }));
  });
});
