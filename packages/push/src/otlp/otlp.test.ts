import { describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import { decodeBody } from "../decode.js";
import {
  attribute,
  decodeRows,
  encodeRequest,
  type JsonRecord,
  type JsonValue,
  otlpBody,
  plainMapping,
  requestOf,
  untimedNs,
} from "../testing/otlp.js";

const timeUnixNano = "1795168800000000007";
const ns = 1_795_168_800_000_000_007n;
const stream = '{service_name="shop"}';

/** The row of one record, by each form: both must say the same. */
function rowOf(record: JsonRecord) {
  const rows = (["otlp_json", "otlp_protobuf"] as const).map((format) =>
    decodeRows(otlpBody(format, requestOf([record]))),
  );
  expect(rows[0]).toEqual(rows[1]);
  return rows[0]![0]!;
}

const nested: JsonValue = {
  kvlistValue: {
    values: [
      attribute("z", { intValue: "-9223372036854775808" }),
      attribute("a", { arrayValue: { values: [{ stringValue: '<"&\u2028\n\u0001' }, {}] } }),
      attribute("m", { kvlistValue: { values: [] } }),
      attribute("b", { bytesValue: "aGk=" }),
      attribute("f", { boolValue: false }),
      attribute("d", { doubleValue: 1e21 }),
    ],
  },
};

describe.each<[string, JsonValue | undefined, string]>([
  ["a text", { stringValue: "größe\n" }, "größe\n"],
  ["an empty text", { stringValue: "" }, ""],
  ["a number", { intValue: 42 }, "42"],
  ["a negative number", { intValue: "-1" }, "-1"],
  ["the largest number", { intValue: "9223372036854775807" }, "9223372036854775807"],
  ["a double", { doubleValue: 2.5 }, "2.5"],
  ["a whole double", { doubleValue: 3 }, "3"],
  ["a small double", { doubleValue: 1e-7 }, "1e-7"],
  ["what is no number", { doubleValue: "NaN" }, "NaN"],
  ["infinity", { doubleValue: "-Infinity" }, "-Inf"],
  ["true", { boolValue: true }, "true"],
  ["false", { boolValue: false }, "false"],
  ["bytes", { bytesValue: "aGVsbG8=" }, "aGVsbG8="],
  ["nothing", {}, ""],
  ["no value", undefined, ""],
  [
    "a list",
    { arrayValue: { values: [{ stringValue: "a" }, { intValue: 2 }, { boolValue: true }] } },
    '["a",2,true]',
  ],
  ["an empty list", { arrayValue: { values: [] } }, "[]"],
  [
    "a map, its names sorted",
    nested,
    '{"a":["\\u003c\\"\\u0026\\u2028\\n\\u0001",null],"b":"aGk=","d":1e+21,"f":false,"m":{},"z":-9223372036854775808}',
  ],
])("%s", (_, value, want) => {
  it("is a line", () => {
    const row = rowOf({ timeUnixNano, ...(value === undefined ? {} : { body: value }) });
    expect(row).toEqual({ stream, ns, line: want, metadata: {} });
  });
});

describe("metadata of a record", () => {
  it("has its fields beside its attributes", () => {
    const row = rowOf({
      timeUnixNano,
      observedTimeUnixNano: "1795168800000000041",
      severityNumber: 17,
      severityText: "ERROR",
      attributes: [attribute("user.id", "u1"), attribute("empty", "")],
      droppedAttributesCount: 2,
      flags: 4_294_967_295,
      traceId: "5b8efff798038103d269b633813fc60c",
      spanId: "EEE19b7ec3c1b174",
      eventName: "click",
    });
    expect(row.metadata).toEqual({
      dropped_attributes_count: "2",
      event_name: "click",
      flags: "4294967295",
      observed_timestamp: "1795168800000000041",
      severity_number: "17",
      severity_text: "ERROR",
      span_id: "eee19b7ec3c1b174",
      trace_id: "5b8efff798038103d269b633813fc60c",
      user_id: "u1",
    });
  });

  it("has a member of a map under a name of its own", () => {
    const inner = { kvlistValue: { values: [attribute("x.y", "1"), attribute("n", nested)] } };
    const row = rowOf({ timeUnixNano, attributes: [attribute("m", inner)] });
    expect(row.metadata).toEqual({
      m_n_a: '["\\u003c\\"\\u0026\\u2028\\n\\u0001",null]',
      m_n_b: "aGk=",
      m_n_d: "1e+21",
      m_n_f: "false",
      m_n_z: "-9223372036854775808",
      m_x_y: "1",
    });
  });

  it("has a severity below zero as it came", () => {
    expect(rowOf({ timeUnixNano, severityNumber: -1 }).metadata).toEqual({ severity_number: "-1" });
  });

  it("lets the resource and the scope win over the record", () => {
    const request = {
      resourceLogs: [
        {
          resource: { attributes: [attribute("a", "resource"), attribute("b", "resource")] },
          scopeLogs: [
            {
              scope: {
                name: "lib",
                version: "1.2",
                attributes: [attribute("b", "scope"), attribute("scope.name", "attribute")],
                droppedAttributesCount: 3,
              },
              logRecords: [{ timeUnixNano, attributes: [attribute("a", "record")] }],
            },
          ],
        },
      ],
    };
    const [row] = decodeRows(otlpBody("otlp_protobuf", request));
    expect(row?.metadata).toEqual({
      a: "resource",
      b: "scope",
      scope_dropped_attributes_count: "3",
      scope_name: "lib",
      scope_version: "1.2",
    });
    expect(decodeRows(otlpBody("otlp_json", request))).toEqual([row]);
  });
});

describe("the time of a record", () => {
  it.each<[string, JsonRecord, bigint]>([
    ["is its own", { timeUnixNano, observedTimeUnixNano: "5" }, ns],
    ["is when it was observed", { observedTimeUnixNano: timeUnixNano }, ns],
    ["may be the last there is", { timeUnixNano: "18446744073709551615" }, 2n ** 64n - 1n],
    ["may be short after the first", { timeUnixNano: "1000000001" }, 1_000_000_001n],
  ])("%s", (_, record, want) => {
    expect(rowOf(record).ns).toBe(want);
  });

  it.each(["otlp_json", "otlp_protobuf"] as const)(
    "that has none is its number among such, over all resources and scopes, in %s",
    (format) => {
      const scopes = [{ logRecords: [{}, { timeUnixNano }] }, { logRecords: [{}] }];
      const request = { resourceLogs: [{ scopeLogs: scopes }, { scopeLogs: scopes }] };
      const times = decodeRows(otlpBody(format, request)).map((row) => row.ns);
      expect(times).toEqual([
        ...[untimedNs, ns, untimedNs + 1n],
        ...[untimedNs + 2n, ns, untimedNs + 3n],
      ]);
    },
  );

  it("that has none is when the push came, where an older log says that", () => {
    const receivedMs = 1_795_168_800_123;
    const body = otlpBody("otlp_json", requestOf([{}, {}]));
    const rows = decodeRows({ ...body, otlp: { mapping: plainMapping, receivedMs } });
    const receivedNs = BigInt(receivedMs) * 1_000_000n;
    expect(rows.map((row) => row.ns)).toEqual([receivedNs, receivedNs]);
  });
});

describe("rules", () => {
  const mapping = {
    resource: [
      { action: "drop", attributes: ["secret"], regex: "" },
      { action: "index_label", attributes: [], regex: "(service|k8s)\\..*" },
    ],
    scope: [{ action: "drop", attributes: [], regex: "s.*" }],
    log: [
      { action: "index_label", attributes: ["team"], regex: "" },
      { action: "drop", attributes: ["team", "noise"], regex: "" },
    ],
    severityTextAsLabel: true,
  } as const;
  const resource = [
    attribute("service.name", "shop"),
    attribute("k8s.pod", { kvlistValue: { values: [attribute("uid", "7"), attribute("n", "p")] } }),
    attribute("xk8s.y", "not whole"),
    attribute("secret", "s"),
  ];
  const labels = 'k8s_pod_n="p", k8s_pod_uid="7", service_name="shop"';

  it("make labels, which divide the records of a resource", () => {
    const records = [
      { timeUnixNano: "1", attributes: [attribute("team", "a"), attribute("noise", "n")] },
      { timeUnixNano: "2", attributes: [attribute("kept", "k")] },
      { timeUnixNano: "3", severityText: "WARN", attributes: [attribute("team", "a")] },
      { timeUnixNano: "4", attributes: [attribute("team", "a"), attribute("kept", "l")] },
    ];
    const metadata = { xk8s_y: "not whole" };
    expect(decodeRows(otlpBody("otlp_json", requestOf(records, resource), mapping))).toEqual([
      { stream: `{${labels}, team="a"}`, ns: 1n, line: "", metadata },
      { stream: `{${labels}, team="a"}`, ns: 4n, line: "", metadata: { ...metadata, kept: "l" } },
      { stream: `{${labels}}`, ns: 2n, line: "", metadata: { ...metadata, kept: "k" } },
      {
        stream:
          '{k8s_pod_n="p", k8s_pod_uid="7", service_name="shop", severity_text="WARN", team="a"}',
        ns: 3n,
        line: "",
        metadata,
      },
    ]);
  });

  it("may leave no label, and the service is known all the same", () => {
    const none = { ...plainMapping, resource: [] };
    const push = decodeBody(otlpBody("otlp_protobuf", requestOf([{}]), none));
    expect([...push.streamServiceKnown!]).toEqual([1]);
    const unnamed = requestOf([{}], [attribute("service.name", "")]);
    expect([...decodeBody(otlpBody("otlp_json", unnamed)).streamServiceKnown!]).toEqual([0]);
  });

  it("that give a label no name refuse the push", () => {
    const rule = { action: "index_label", attributes: ["..."], regex: "" } as const;
    const body = otlpBody("otlp_json", requestOf([{}], [attribute("...", "x")]), {
      ...plainMapping,
      resource: [rule],
    });
    expect(() => decodeBody(body)).toThrow(
      "attribute name '...' has no letter or digit to make a label name from",
    );
  });
});

describe("a body", () => {
  it("may have its fields in any order, and unknown ones", () => {
    const [resourceLogs] = [
      encodeRequest(requestOf([{ timeUnixNano, body: { stringValue: "x" } }])),
    ];
    // The resource behind the scopes, a field of each wire type before them.
    const inner = resourceLogs.subarray(2);
    const resource = inner.subarray(0, 2 + inner[1]!);
    const scopes = inner.subarray(resource.length);
    const unknown = Buffer.from("f80601f9060000000000000000fa060161fd0600000000", "hex");
    const content = Buffer.concat([unknown, scopes, resource]);
    const body = Buffer.concat([unknown, Buffer.of(0x0a, content.length), content]);
    const rows = decodeRows({ ...otlpBody("otlp_protobuf", requestOf([])), body });
    expect(rows).toEqual([{ stream, ns, line: "x", metadata: {} }]);
  });

  it("in JSON may spell names either way and have white space, nulls and unknown members", () => {
    const body = Buffer.from(` {"x": [1, {"y": "\\"}"}, null, true], "resource_logs": [
      {"resource": null, "schemaUrl": "u", "scope_logs": [ {"scope": {}, "log_records": [
        {"time_unix_nano": ${timeUnixNano}, "severity_number": "SEVERITY_NUMBER_WARN2",
         "body": {"string_value": "\\u00fc\\ud83d\\ude00\\ud83d\\/\\b"}, "attributes": null, "trace_id": "", "spanId": "0000000000000000"},
        null ]} ]} ]} `);
    expect(decodeRows({ ...otlpBody("otlp_json", requestOf([])), body })).toEqual([
      { stream: "{}", ns, line: "ü😀\ufffd/\b", metadata: { severity_number: "14" } },
      { stream: "{}", ns: untimedNs, line: "", metadata: {} },
    ]);
  });

  it.each([
    ["not json", /invalid JSON at byte/],
    ["", /invalid JSON/],
    ["[]", /expected '\{'/],
    ['{"resourceLogs":[{]}', /expected '"'/],
    ['{"resourceLogs":{}}', /expected '\['/],
    ['{"resourceLogs":[]} x', /unexpected text behind/],
    ['{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1.5"}]}]}]}', /whole number/],
    ['{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"-1"}]}]}]}', /out of range/],
    ['{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"abc"}]}]}]}', /hex digits/],
    [
      '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"traceId":"0102"}]}]}]}',
      /trace_id has 2 bytes/,
    ],
    [
      '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"spanId":"010203040506070809"}]}]}]}',
      /span_id has 9 bytes/,
    ],
    ['{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":"text"}]}]}]}', /expected '\{'/],
    [`{"a":${"[".repeat(100_000)}`, /256 levels of nesting/],
    ['{"a":"\u0001"}', /invalid character in a string/],
    ['{"a":"x', /unexpected end of a string/],
    ['{"a":"\\q"}', /invalid escape/],
    ['{"a":01}', /expected '}'/],
    ['{"a":NaN}', /expected a value/],
  ])("in JSON that is malformed is refused: %.60s", (text, want) => {
    const body = { ...otlpBody("otlp_json", requestOf([])), body: Buffer.from(text) };
    expect(() => decodeBody(body)).toThrow(want);
    expect(codeOf(body)).toBe("invalid_argument");
  });

  it.each([
    ["ffffffff", "unexpected EOF"],
    ["0aff", "unexpected EOF"],
    ["07", "proto: illegal tag"],
    ["0b", "proto: illegal wireType 3"],
    ["0affffffffffffffffffff01", "proto: integer overflow"],
  ])("in protobuf that is malformed is refused: %s", (hex, want) => {
    const body = { ...otlpBody("otlp_protobuf", requestOf([])), body: Buffer.from(hex, "hex") };
    expect(() => decodeBody(body)).toThrow(want);
    expect(codeOf(body)).toBe("invalid_argument");
  });

  it("with values nested without end is refused", () => {
    let value: JsonValue = { stringValue: "x" };
    for (let i = 0; i < 70; i++) value = { arrayValue: { values: [value] } };
    const body = otlpBody("otlp_protobuf", requestOf([{ body: value }]));
    expect(() => decodeBody(body)).toThrow("nested more than 64 levels deep");
    let map: JsonValue = { stringValue: "x" };
    for (let i = 0; i < 70; i++) map = { kvlistValue: { values: [attribute("k", map)] } };
    const flat = otlpBody("otlp_protobuf", requestOf([{ attributes: [attribute("k", map)] }]));
    expect(() => decodeBody(flat)).toThrow("nested more than 64 levels deep");
  });

  it("whose names multiply beyond the limit is refused", () => {
    const members = Array.from({ length: 1000 }, (_, i) => attribute(`${i}`, "x"));
    const key = "k".repeat(10_000);
    const attributes = [attribute(key, { kvlistValue: { values: members } })];
    const body = otlpBody("otlp_protobuf", requestOf([{ attributes }]));
    expect(() => decodeBody(body, 1024 * 1024)).toThrow("request body too large");
  });
});

function codeOf(body: Parameters<typeof decodeBody>[0]): string {
  try {
    decodeBody(body);
  } catch (error) {
    if (error instanceof SkaldError) return error.code;
  }
  return "none";
}
