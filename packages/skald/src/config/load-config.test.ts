import { describe, expect, it } from "@jest/globals";
import { leavesOf, limitsConfig, readSchema } from "@skald/runtime/config";
import { configRoot, configToYaml, loadConfig } from "./load-config.js";
import { load, minimal, run, schema, text } from "./testing/load.js";
import { samples } from "./testing/samples.js";

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
    [
      "one node",
      [
        "volumes and patterns are not written back as streams; no effect: limits_config.metric_aggregation_enabled (c.yaml:19:17), pattern_ingester.metric_aggregation.loki_address (c.yaml:25:24)",
      ],
    ],
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
        "storage_config.bloom_shipper.working_directory (c.yaml:44:19)",
        "only tsdb is supported; no effect: storage_config.boltdb_shipper.index_gateway_client.server_address (c.yaml:45:",
        "limits_config: nothing is deleted by age unless compactor.retention_enabled is set: retention_period, retention_stream",
        "are not logged; no effect: operational_config.log_push_request (c.yaml:51:22)",
        "chunk_store_config.chunk_cache_config.memcached_client.addresses",
      ],
    ],
    [
      "an old file",
      [
        "there are no checkpoints and no transfers; no effect: ingester.max_transfer_retries (c.yaml:8:3)",
        "the key has no meaning any more; no effect: schema_config.configs[].chunks.prefix (c.yaml:11:",
        "use compactor.retention_enabled and limits_config.retention_period; no effect: table_manager.retention_deletes_enabled",
        "limits_config.per_tenant_override_config: still honoured",
        "use limits_config.split_queries_by_interval; no effect: query_range.split_queries_by_interval",
        "use embedded_cache; no effect: query_range.results_cache.cache.enable_fifocache",
        "use querier.max_concurrent; no effect: frontend_worker.parallelism",
        "use limits_config.query_timeout; no effect: querier.engine.timeout",
        "use limits_config.max_query_lookback; no effect: chunk_store_config.max_look_back_period",
        "of schema_config is used; no effect: compactor.shared_store",
      ],
    ],
  ];
  it.each(wanted)("starts with %s and says what does nothing", (name, expected) => {
    const { warnings } = run(load(samples[name] as string));
    for (const warning of expected)
      expect(warnings).toContainEqual(expect.stringContaining(warning));
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
    expect(config.ruler.wal.dir).toBe("/p/ruler-wal");
    expect(config.compactor.working_directory).toBe("/p/compactor");
    expect(config.storage_config.filesystem.directory).toBe("/p/chunks");
    expect(config.storage_config.segment_cache.directory).toBe("/p/segment-cache");
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

  it("copies the common store to that of the data", () => {
    const { config } = run(
      load(`${schema}\ncommon: {path_prefix: /d, storage: {s3: {bucketnames: b}}}`),
    );
    expect(config.storage_config.aws.bucketnames).toBe("b");
  });

  it.each([
    [[], 9095],
    [["-server.http-listen-port=0"], 0],
    [["-server.http-listen-port=0", "-server.grpc-listen-port=1"], 1],
    [["-server.http-listen-port=0", "-target=querier"], 9095],
  ])("takes any port for gRPC where that for HTTP is any, with %j", (flags, port) => {
    expect(run(loadConfig(flags, {})).config.server.grpc_listen_port).toBe(port);
  });

  it("uses the scheduler ring unless an address is given", () => {
    expect(run(load(minimal)).config.query_scheduler.use_scheduler_ring).toBe(true);
    const given = run(load(`${minimal}\nfrontend: {scheduler_address: "s:1"}`)).config;
    expect(given.query_scheduler.use_scheduler_ring).toBe(false);
  });
});

describe("the declarations", () => {
  it("have help for every key and unique flags", () => {
    const leaves = [...leavesOf(configRoot)];
    expect(leaves.filter((leaf) => leaf.note.help === "").map((leaf) => leaf.path)).toEqual([]);
    expect(text(load(minimal, "-target=all"))).toBe("started");
  });

  it("hold every limit", () => {
    expect([...leavesOf(readSchema(limitsConfig))].length).toBeGreaterThan(50);
  });
});
