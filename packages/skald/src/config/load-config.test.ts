import { describe, expect, it } from "@jest/globals";
import { leavesOf, limitsConfig, readSchema } from "@skald/runtime/config";
import { configRoot, configToYaml, type LoadedConfig, loadConfig } from "./load-config.js";
import { samples } from "./testing/samples.js";

function load(yaml: string, ...argv: string[]): LoadedConfig {
  const options = { readFile: () => yaml };
  return loadConfig(["-config.file=c.yaml", "-config.expand-env=true", ...argv], {}, options);
}

/** The loaded configuration; throws what was printed instead. */
function run(loaded: LoadedConfig): Exclude<LoadedConfig, { exit: unknown }> {
  if ("exit" in loaded) throw new Error(loaded.exit.text);
  return loaded;
}

function text(loaded: LoadedConfig): string {
  return "exit" in loaded ? loaded.exit.text : "started";
}

const schema =
  "schema_config: {configs: [{from: 2024-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {period: 24h}}]}";
const minimal = `${schema}\ncommon: {path_prefix: /d}`;

describe("defaults", () => {
  it("runs one open node below ./data without a file", () => {
    const { config, warnings } = run(loadConfig([], {}));
    expect(warnings).toEqual([]);
    expect(config.auth_enabled).toBe(false);
    expect(config.storage_config.filesystem.directory).toBe("./data/chunks");
    expect(config.ingester.wal).toMatchObject({
      dir: "./data/wal",
      fsync: "interval",
      fsync_interval: 100,
    });
    expect(config.ingester.head_target_size).toBe(32 * 2 ** 20);
    expect(config.server).toMatchObject({ http_listen_port: 3100, worker_threads: 0 });
    expect(config.limits_config).toMatchObject({
      ingestion_rate_mb: 1024,
      max_global_streams_per_user: 100_000,
      volume_enabled: true,
    });
  });

  it("does not mix the built-in file with another one", () => {
    const { config, warnings } = run(load(minimal));
    expect(warnings).toEqual([]);
    expect(config.auth_enabled).toBe(true);
    expect(config.limits_config).toMatchObject({
      ingestion_rate_mb: 4,
      ingestion_burst_size_mb: 6,
      max_global_streams_per_user: 5000,
      query_timeout: 60_000,
      max_query_length: 721 * 3_600_000,
      max_line_size: 262_144,
      reject_old_samples_max_age: 604_800_000,
    });
  });

  it("lets flags win over the built-in file", () => {
    const { config } = run(loadConfig(["-auth.enabled", "-server.http-listen-port=1"], {}));
    expect(config.auth_enabled).toBe(true);
    expect(config.server.http_listen_port).toBe(1);
  });

  it("prints itself in each mode", () => {
    const { config, changed, defaults } = run(loadConfig(["-log.level=warn"], {}));
    expect(configToYaml(config, { mode: "full" })).toMatch(/^auth_enabled: false$/m);
    expect(configToYaml(config, { mode: "defaults" })).toMatch(/^auth_enabled: true$/m);
    const diffs = configToYaml(config, { mode: "diffs" });
    expect(diffs).toMatch(/^server:\n(?: {2}.*\n)* {2}log_level: warn\n/m);
    expect(diffs).not.toContain("http_listen_port");
    expect(changed).toMatchObject({ server: { log_level: "warn" } });
    expect(defaults.server.log_level).toBe("info");
  });

  it("reads back what it prints", () => {
    for (const sample of Object.values(samples)) {
      const { config } = run(load(sample));
      const again = run(load(configToYaml(config, { mode: "full" }).replaceAll("********", "x")));
      const masked = configToYaml(again.config, { mode: "full" });
      expect(masked).toBe(configToYaml(config, { mode: "full" }));
    }
  });
});

describe("files that people have", () => {
  const wanted: [string, string[]][] = [
    ["one node", ["pattern_ingester"]],
    ["an image", []],
    [
      "several nodes with gossip",
      [
        "schema_config.configs[0]: data of store boltdb-shipper is not read",
        "kvstore.store: memberlist is not spoken, rings are kept in the memory of this process; for several processes set common.ring.kvstore.store: redis",
      ],
    ],
    [
      "a chart",
      [
        "c.yaml:44:3: storage_config.bloom_shipper: is an experiment",
        "c.yaml:45:3: storage_config.boltdb_shipper: only tsdb is supported",
        "limits_config: nothing is deleted by age unless compactor.retention_enabled is set: retention_period, retention_stream",
        "operational_config: these lines are not logged yet: log_push_request",
      ],
    ],
    [
      "an old file",
      [
        "ingester.max_transfer_retries: the write-ahead log took its place",
        "schema_config.configs[].chunks: has no meaning any more",
        "table_manager: use compactor.retention_enabled instead",
        "limits_config.unordered_writes: has no meaning any more",
        "limits_config.per_tenant_override_config: still honoured",
        "query_range.split_queries_by_interval: use limits_config.split_queries_by_interval",
        "query_range.results_cache.cache.fifocache: use embedded_cache instead",
        "frontend_worker.parallelism: use querier.max_concurrent instead",
        "querier.engine.timeout: use limits_config.query_timeout instead",
        "compactor.shared_store: the object_store of the period is used",
      ],
    ],
  ];
  it.each(wanted)("starts with %s and says what does nothing", (name, expected) => {
    const { warnings } = run(load(samples[name] as string));
    for (const warning of expected)
      expect(warnings).toContainEqual(expect.stringContaining(warning));
    const text = warnings.join("\n");
    expect(text).not.toMatch(/bloom_build|bloom_gateway|^analytics|use_thanos|reporting/m);
  });

  it("names a section once", () => {
    const { warnings } = run(load(samples["a chart"] as string));
    expect(warnings.filter((warning) => warning.startsWith("chunk_store_config"))).toHaveLength(1);
  });

  it("takes overrides from the older key", () => {
    const { config } = run(load(samples["an old file"] as string));
    expect(config.runtime_config).toEqual({ file: ["/etc/overrides.yaml"], period: 5000 });
  });
});

describe("derivation", () => {
  it("puts directories below path_prefix unless they are given", () => {
    const { config } = run(
      load(
        `${schema}\ncommon: {path_prefix: /p/, persist_tokens: true}\ningester: {wal: {dir: /w}}`,
      ),
    );
    expect(config.ingester.wal.dir).toBe("/w");
    expect(config.ingester.shutdown_marker_path).toBe("/p");
    expect(config.ingester.lifecycler.tokens_file_path).toBe("/p/ingester.tokens");
    expect(config.ruler).toMatchObject({
      rule_path: "/p/rules-temp",
      wal: { dir: "/p/ruler-wal" },
    });
    expect(config.compactor.working_directory).toBe("/p/compactor");
    expect(config.storage_config.filesystem.directory).toBe("/p/chunks");
    expect(config.storage_config.tsdb_shipper.cache_location).toBe("/p/tsdb-shipper-cache");
  });

  it.each([
    ["common", "common: {storage: {filesystem: {chunks_directory: /c}}}"],
    ["storage_config", "storage_config: {filesystem: {directory: /c}}"],
    ["object_store", "storage_config: {object_store: {filesystem: {dir: /c}}}"],
    ["common.object_store", "common: {storage: {object_store: {filesystem: {dir: /c}}}}"],
  ])("finds the directory of the data in %s", (_, yaml) => {
    const { config } = run(load(`${schema}\n${yaml}`));
    expect(config.storage_config.filesystem.directory).toBe("/c");
  });

  it("copies common.ring to all rings but not over their own keys", () => {
    const { config } = run(
      load(
        `${minimal}, instance_addr: 1.2.3.4, ring: {kvstore: {store: etcd}, heartbeat_period: 9s}}
ruler: {ring: {heartbeat_period: 1s}}`.replace("/d}", "/d"),
      ),
    );
    expect(config.distributor.ring.kvstore.store).toBe("etcd");
    expect(config.ingester.lifecycler.ring.kvstore.store).toBe("etcd");
    expect(config.ingester.lifecycler.heartbeat_period).toBe(9000);
    expect(config.ingester.lifecycler.address).toBe("1.2.3.4");
    expect(config.ruler.ring).toMatchObject({
      heartbeat_period: 1000,
      kvstore: { store: "etcd" },
      instance_addr: "1.2.3.4",
    });
    expect(config.memberlist.advertise_addr).toBe("1.2.3.4");
  });

  it("gives the Redis of common.ring to all rings, and needs to know where it is", () => {
    const redis = "{store: redis, redis: {endpoint: 'redis:6379', password: p}}";
    const { config } = run(load(`${minimal}, ring: {kvstore: ${redis}}}`.replace("/d}", "/d")));
    const wanted = { store: "redis", redis: { endpoint: "redis:6379", password: "p" } };
    expect(config.distributor.ring.kvstore).toMatchObject(wanted);
    expect(config.ingester.lifecycler.ring.kvstore).toMatchObject(wanted);
    expect(config.compactor.compactor_ring.kvstore).toMatchObject(wanted);
    const nowhere = load(`${minimal}, ring: {kvstore: {store: redis}}}`.replace("/d}", "/d"));
    expect(text(nowhere)).toContain("set distributor.ring.kvstore.redis.endpoint");
  });

  it("takes gossip for all rings, else the ring of the ingester", () => {
    const gossip = run(load(`${minimal}\nmemberlist: {join_members: [a]}`)).config;
    expect(gossip.index_gateway.ring.kvstore.store).toBe("memberlist");
    expect(gossip.ingester.lifecycler.ring.kvstore.store).toBe("memberlist");
    const own = "ingester: {lifecycler: {ring: {kvstore: {store: consul}}}}";
    const ingester = run(load(`${minimal}\n${own}`)).config;
    expect(ingester.distributor.ring.kvstore.store).toBe("consul");
    expect(ingester.pattern_ingester.lifecycler.ring.kvstore.store).toBe("consul");
  });

  it("copies the common store to chunks and rules", () => {
    const { config } = run(
      load(
        `${schema}\ncommon: {path_prefix: /d, storage: {s3: {bucketnames: b}, hedging: {up_to: 4}}}`,
      ),
    );
    expect(config.storage_config.aws.bucketnames).toBe("b");
    expect(config.ruler.storage).toMatchObject({ s3: { bucketnames: "b" } });
    expect(config.storage_config.hedging.up_to).toBe(4);
  });

  it("uses the scheduler ring unless an address is given", () => {
    expect(run(load(minimal)).config.query_scheduler.use_scheduler_ring).toBe(true);
    const given = run(load(`${minimal}\nfrontend: {scheduler_address: "s:1"}`)).config;
    expect(given.query_scheduler.use_scheduler_ring).toBe(false);
  });
});

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
      `${schema}\ncommon: {path_prefix: /d, storage: {s3: {bucketnames: b}, gcs: {bucket_name: c}}}`,
      "common.storage has several stores, s3, gcs; keep one",
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
      "common.storage.gcs: this object store is not built into this version",
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
      "lbac: access by labels is not built",
    ],
    [
      "access tokens",
      `${minimal}\nauth: {type: enterprise}`,
      "auth: a check of access tokens is not built",
    ],
    [
      "a check of clusters",
      `${minimal}\nserver: {cluster_validation: {label: a, http: {enabled: true}}}`,
      "server.cluster_validation.http: clusters are not told apart; let a proxy",
    ],
    [
      "exclusive queries",
      `${minimal}\nquerier: {query_store_only: true, query_ingester_only: true}`,
      "exclude each other",
    ],
    [
      "two sources of work",
      `${minimal}\nfrontend_worker: {frontend_address: a, scheduler_address: b}`,
      "frontend_worker.frontend_address and frontend_worker.scheduler_address exclude each other",
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

  it("accept keys of features that are not built", () => {
    const keys = "distributor: {ingest_limits_enabled: false, kafka_writes_enabled: false}";
    expect(run(load(`${minimal}\n${keys}\nquery_engine: {enable: false}`)).warnings).toEqual([
      "c.yaml:3:15: distributor.ingest_limits_enabled: is an experiment that Skald does not take part in",
      "c.yaml:3:45: distributor.kafka_writes_enabled: is an experiment that Skald does not take part in",
    ]);
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

describe("the declarations", () => {
  it("have help for every key and unique flags", () => {
    const leaves = [...leavesOf(configRoot)];
    expect(leaves.filter((leaf) => leaf.note.help === "").map((leaf) => leaf.path)).toEqual([]);
    expect(text(load(minimal, "-target=all"))).toBe("started");
  });

  it("hold every limit", () => {
    expect([...leavesOf(readSchema(limitsConfig))].length).toBeGreaterThan(90);
  });
});
