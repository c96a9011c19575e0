import { describe, expect, it } from "@jest/globals";
import { load, minimal, run, schema, text } from "./testing/load.js";
import { samples } from "./testing/samples.js";

describe("checks", () => {
  const period = (change: string): string =>
    `common: {path_prefix: /d}\nschema_config: {configs: [{from: 2024-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {period: 24h}, ${change}}]}`;
  const cases: [string, string, string][] = [
    [
      "a target",
      `${minimal}\ntarget: querer`,
      "unrecognised module name: querer; did you mean querier?",
    ],
    ["no target", `${minimal}\ntarget: []`, "target is empty"],
    [
      "retention without a store",
      `${minimal}\ncompactor: {retention_enabled: true}`,
      "compactor.delete-request-store should be configured when retention is enabled",
    ],
    [
      "a wrong selector of streams to keep",
      `${minimal}\nlimits_config: {retention_stream: [{selector: '{a=', period: 24h}]}`,
      "limits_config.retention_stream: parse error",
    ],
    [
      "short retention of streams",
      `${minimal}\nlimits_config: {retention_stream: [{selector: '{a="b"}', period: 12h}]}`,
      "retention period must be >= 24h was 12h",
    ],
    [
      "an empty compactor directory",
      `${minimal}\ncompactor: {working_directory: ""}`,
      "compactor.working_directory is empty",
    ],
    [
      "two stores",
      `${schema}\ncommon: {path_prefix: /d, storage: {s3: {bucketnames: b}, filesystem: {chunks_directory: c}}}`,
      "common.storage has several stores, s3, filesystem; keep one",
    ],
    [
      "a store that is not built",
      samples["a chart"]?.replace("object_store: filesystem", "object_store: gcs") ?? "",
      "schema_config: object_store gcs is not built into this version; set object_store: filesystem in schema_config, and storage_config.filesystem.directory",
    ],
    [
      "a named store",
      `${minimal.replace("object_store: filesystem", "object_store: mine")}\nstorage_config: {named_stores: {aws: {mine: {bucketnames: b}}}}`,
      "schema_config: object_store mine is not built into this version",
    ],
    [
      "a store that is not built, without periods",
      "common: {path_prefix: /d, storage: {gcs: {bucket_name: b}}}",
      "common.storage.gcs.bucket_name: only filesystem and s3 are built into this version; set object_store",
    ],
    [
      "s3 without a bucket",
      `${minimal.replace("object_store: filesystem", "object_store: s3")}`,
      "storage_config.aws: the bucket is missing; set bucketnames",
    ],
    [
      "several buckets",
      "common: {path_prefix: /d, storage: {s3: {bucketnames: 'b,c'}}}",
      "storage_config.aws: several buckets are not supported; name one",
    ],
    [
      "a bucket that is no URL",
      "common: {path_prefix: /d, storage: {s3: {s3: 'http://host/b'}}}",
      "storage_config.aws: s3 is not of the form s3://key:secret@host-or-region/bucket",
    ],
    [
      "a certificate without its key",
      `${minimal}\nserver: {http_tls_config: {cert_file: c}}`,
      "server.http_tls_config: certificate and key belong together",
    ],
    [
      "certificates of clients that nothing verifies",
      `${minimal}\nserver: {http_tls_config: {cert_file: c, key_file: k, client_auth_type: RequireAndVerifyClientCert}}`,
      "server.http_tls_config: client_auth_type: RequireAndVerifyClientCert needs client_ca or client_ca_file",
    ],
    [
      "certificates of clients without TLS",
      `${minimal}\nserver: {http_tls_config: {client_auth_type: RequireAnyClientCert}}`,
      "server.http_tls_config: TLS is not served without a certificate",
    ],
    [
      "a version of TLS without TLS",
      `${minimal}\nserver: {tls_min_version: VersionTLS13}`,
      "server.http_tls_config: TLS is not served without a certificate",
    ],
    [
      "an unknown cipher suite",
      `${minimal}\nserver: {http_tls_config: {cert_file: c, key_file: k}, tls_cipher_suites: "TLS_AES_128_GCM_SHA256, none"}`,
      "server.tls_cipher_suites: none is unknown or not supported",
    ],
    [
      "a certificate for calls",
      `${minimal}\nserver: {grpc_tls_config: {key: k}}`,
      "server.grpc_tls_config",
    ],
    [
      "access by labels",
      `${minimal}\nlbac: {enabled: true}`,
      "lbac.enabled: access by labels is not built",
    ],
    [
      "an origin with a path",
      `${minimal}\nui: {allowed_origins: ["https://a/b"]}`,
      'ui.allowed_origins: "https://a/b" is no origin; write https://host:port',
    ],
    [
      "access tokens",
      `${minimal}\nauth: {type: enterprise}`,
      "auth.type: a check of access tokens is not built",
    ],
    [
      "a check of clusters",
      `${minimal}\nserver: {cluster_validation: {label: a, http: {enabled: true}}}`,
      "server.cluster_validation.http.enabled: clusters are not told apart; let a proxy",
    ],
  ];
  it.each(cases)("refuse %s", (_, yaml, problem) => {
    expect(text(load(yaml))).toContain(problem);
    expect(text(load(yaml))).toMatch(/^(?:CONFIG WARNING: .*\n)*CONFIG ERROR: .*\n$/);
  });

  const replaced: [string, string, string, string][] = [
    [
      "an unknown store",
      "object_store: filesystem",
      "object_store: nope",
      "unrecognized `object_store` type `nope`",
    ],
    [
      "old schema",
      "schema: v13",
      "schema: v12",
      "schema v13 is required to store Structured Metadata",
    ],
    ["unknown schema", "schema: v13", "schema: v99", 'schema "v99" is unknown; use v13'],
    ["unknown index", "store: tsdb", "store: sql", 'store "sql" is unknown; use tsdb'],
    [
      "old index",
      "store: tsdb",
      "store: boltdb-shipper",
      "store boltdb-shipper of the last period must be tsdb",
    ],
    ["a long table", "period: 24h", "period: 168h", "index.period must be 24h for tsdb, not 1w"],
    ["a bad day", "2024-01-01", "2024-13-01", 'from "2024-13-01" is not a day'],
  ];
  it.each(replaced)("refuse %s in the schema", (_, from, to, problem) => {
    expect(text(load(minimal.replace(from, to)))).toContain(problem);
  });

  it("need no schema", () => {
    const { config, warnings } = run(load("common: {path_prefix: /d}"));
    expect(warnings).toEqual([]);
    expect(config.storage_config.filesystem.directory).toBe("/d/chunks");
  });

  it("warn of a directory that nobody chose", () => {
    const { config, warnings } = run(load(schema));
    expect(config.storage_config.filesystem.directory).toBe("chunks");
    expect(warnings).toEqual([
      "storage_config.filesystem.directory is not set: data is kept in chunks below the working directory; set it or common.path_prefix",
    ]);
    const empty = "storage_config: {filesystem: {directory: ''}}";
    expect(run(load(`${schema}\n${empty}`)).warnings).toEqual(warnings);
  });

  it.each([
    ['address: "x"', 'address: "x" is not host:port, such as 0.0.0.0:5514'],
    ['address: ":70000"', 'address: ":70000" is not host:port'],
    ['address: ":1", tenant: a/b', "contains unsupported character '/'"],
    ['address: ":1", labels: {a-b: c}', "labels: a-b is no label name"],
    ['address: ":1", label_fields: [procid]', "label_fields: procid is not one of host, app"],
    ['address: ":1", labels: {app: x}', "label_fields: app is among labels, too"],
    ['address: ":1", time_zone: Mars', "time_zone: Invalid time zone specified: Mars"],
    ['address: ":1", protocol: tls', "tls_config: set cert_file and key_file"],
    [
      'address: ":1", tls_config: {cert_file: c, key_file: k}',
      "tls_config: protocol tcp has no TLS; use tls",
    ],
    [
      'address: ":1", protocol: tls, tls_config: {cert_file: c, key_file: k, client_auth_type: x}',
      "tls_config: client_auth_type: unknown kind x",
    ],
    ['address: ":1", framing: lines', '"lines" is not one of auto, octet_counting, newline'],
    ['address: ":1", max_message_size: 2MB', "2MB is more than 1MB"],
  ])("refuse a syslog listener: %s", (listener, problem) => {
    const whole = listener.includes("tenant") ? listener : `tenant: t, ${listener}`;
    const printed = text(load(`${minimal}\nsyslog: {listeners: [{${whole}}]}`));
    expect(printed).toContain("syslog.listeners");
    expect(printed).toContain(problem);
  });

  it("warn that syslog keeps fewer fields without structured metadata", () => {
    const listeners = "auth_enabled: false\nsyslog: {listeners: [{address: ':514'}]}";
    const off = "limits_config: {allow_structured_metadata: false}";
    expect(run(load(`${minimal}\n${listeners}`)).warnings).toEqual([]);
    expect(run(load(`${minimal}\n${listeners}\n${off}`)).warnings).toEqual([
      expect.stringMatching(/^syslog.listeners: only label_fields .* are kept/),
    ]);
  });

  it("want a tenant for syslog where there are several", () => {
    const yaml = `${minimal}\nsyslog: {listeners: [{address: "[::1]:514"}]}`;
    expect(text(load(yaml))).toContain("syslog.listeners[0].tenant is missing");
    expect(text(load(yaml, "-auth.enabled=false"))).toBe("started");
  });

  it("warn of rulers that a users file keeps out", () => {
    const users = "auth: {users_file: users.yaml}";
    expect(run(load(`${minimal}\n${users}`)).warnings).toEqual([]);
    const remote = "ruler: {evaluation: {mode: remote, query_frontend: {address: 'http://f'}}}";
    expect(run(load(`${minimal}\n${users}\n${remote}`)).warnings).toEqual([
      expect.stringContaining("remote asks without credentials"),
    ]);
  });

  it("refuse a misspelt key that should keep others out", () => {
    expect(text(load(`${minimal}\nauth: {user_file: users.yaml}`))).toContain(
      'unknown key "user_file" in auth; did you mean "users_file"?',
    );
  });

  it("warn of stores of earlier periods", () => {
    const earlier =
      "{from: 2023-01-01, store: tsdb, object_store: s3, schema: v13, index: {period: 24h}}";
    const { warnings } = run(load(minimal.replace("[{", `[${earlier}, {`)));
    expect(warnings).toEqual(["schema_config.configs[0]: data of object store s3 is not read"]);
  });

  it.each([
    ["128MB", []],
    ["1MB", []],
    [
      "5000MB",
      ["distributor.max_decompressed_size: 4.9GB is more than a push may take; 128MB holds"],
    ],
  ])("tell what of max_decompressed_size holds: %s", (size, warnings) => {
    const { config, warnings: found } = run(
      load(minimal, `-distributor.max-decompressed-size=${size}`),
    );
    expect(found).toEqual(warnings);
    expect(config.distributor.max_decompressed_size).toBe(Number.parseInt(size, 10) * 2 ** 20);
  });

  it.each([
    ["common: {path_prefix: /d, storage: {azure: {account_name: a}}}", []],
    ["common: {path_prefix: /d}\nstorage_config: {swift: {auth_url: a}}", []],
    ["common: {path_prefix: /d}\nstorage_config: {object_store: {bos: {bucket: a}}}", []],
    ["common: {path_prefix: /d}", ["-common.storage.gcs.bucketname=b"]],
    ["common: {path_prefix: /d}", ["-object-store.oss.bucketname=b"]],
  ])("refuse a bucket of another store without periods: %s %j", (yaml, argv) => {
    expect(text(load(yaml, ...argv))).toMatch(
      /only filesystem and s3 are built.*; set object_store/,
    );
    expect(text(load(`${yaml}\n${schema}`, ...argv))).toBe("started");
  });

  it("accept other stores whose bucket has no name", () => {
    const defaults = "gcs: {bucket_name: '', chunk_buffer_size: 0}, azure: {container_name: loki}";
    expect(text(load(`common: {path_prefix: /d, storage: {${defaults}}}`))).toBe("started");
  });

  it("warn of a named store of an earlier period", () => {
    const earlier =
      "{from: 2023-01-01, store: tsdb, object_store: mine.1, schema: v13, index: {period: 24h}}";
    const named = "storage_config: {named_stores: {swift: {mine.1: {region: r}}}}";
    const { warnings } = run(load(`${minimal.replace("[{", `[${earlier}, {`)}\n${named}`));
    expect(warnings).toContain("schema_config.configs[0]: data of object store mine.1 is not read");
  });

  it("accept old schemas without structured metadata", () => {
    const yaml = minimal.replace("v13", "v12");
    const off = "limits_config: {allow_structured_metadata: false}";
    expect(text(load(`${yaml}\n${off}`))).toBe("started");
    expect(text(load(period("row_shards: 16")))).toBe("started");
  });

  it("want periods in order", () => {
    const one =
      "{from: 2024-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {period: 24h}}";
    const yaml = `common: {path_prefix: /d}\nschema_config: {configs: [${one}, ${one}]}`;
    expect(text(load(yaml))).toContain("from 2024-01-01 must be later than 2024-01-01 before it");
  });

  it("take a target that is a part of all", () => {
    expect(run(load(minimal, "-target=read,write")).warnings).toEqual([]);
  });

  it("do not follow from a key that cannot be read", () => {
    expect(text(load("common: {path_prefix: /d}\nschema_config: {configs: 5}"))).toBe(
      'CONFIG ERROR: c.yaml:2:26: schema_config.configs: must be a list, not "5"\n',
    );
  });

  it("find typing errors in limits", () => {
    expect(text(load(`${minimal}\nlimits_config: {ingestion_rate: 5}`))).toBe(
      'CONFIG ERROR: c.yaml:3:17: unknown key "ingestion_rate" in limits_config; did you mean "ingestion_rate_mb"?\n',
    );
  });
});
