import {
  cacheBlock,
  experiment,
  field,
  gone,
  grpcClientBlock,
  notBuilt,
} from "@skald/runtime/config";
import { objectStoreBlock } from "./object-store-block.js";
import { anyStore, azureBlock, gcsBlock, hedgingBlock, s3Block } from "./object-stores.js";

const congestion = "what fails in passing is tried again, later each time";
const tsdbOnly = "only tsdb is supported";

const directory = field.section("A directory.", {
  directory: field.text("", "the directory", "local.chunk-directory"),
});

const namedDirectory = field.section("A directory.", {
  directory: field.text("", "the directory"),
});

const tsdbShipper = field.section(
  "The index in the older layout.",
  {
    active_index_directory: field.text(
      "",
      "directory of the index that is written; default path_prefix/tsdb-shipper-active",
      "tsdb.shipper.active-index-directory",
    ),
    cache_location: field.text(
      "",
      "directory of fetched indexes; default path_prefix/tsdb-shipper-cache",
      "tsdb.shipper.cache-location",
    ),
    cache_ttl: field.duration("24h", "time to keep them", "tsdb.shipper.cache-ttl"),
    resync_interval: field.duration(
      "5m",
      "pause between looks for new ones",
      "tsdb.shipper.resync-interval",
    ),
    query_ready_num_days: field.integer(
      0,
      "days that are fetched ahead",
      "tsdb.shipper.query-ready-num-days",
    ),
    download_timeout: field.duration("1m", "time limit", "tsdb.shipper.download-timeout"),
    index_reader_mode: field.choice(
      "mmap",
      ["mmap", "streaming"],
      "how indexes are read",
      "tsdb.shipper.index-reader-mode",
    ),
    index_gateway_client: field.section("How the index gateways are called.", {
      grpc_client_config: grpcClientBlock("tsdb.shipper.index-gateway-client.grpc", { used: true }),
      server_address: field.text(
        "",
        "the index gateways, host and port, or a name with dns+ or dnssrv+; empty: whoever queries lists the store",
        "tsdb.shipper.index-gateway-client.server-address",
        { used: true },
      ),
      log_gateway_requests: field.toggle(
        false,
        "log the calls",
        "tsdb.shipper.index-gateway-client.log-gateway-requests",
      ),
      time_based_sharding_buckets: field.list(
        [],
        "ages by which gateways are chosen",
        "tsdb.shipper.index-gateway-client.time-based-sharding-buckets",
      ),
      min_shuffle_shard_size: field.integer(
        3,
        "gateways of a tenant at least",
        "tsdb.shipper.index-gateway-client.min-shuffle-shard-size",
      ),
    }),
  },
  {
    unused: "segments carry their own index, there is nothing to ship",
    ignored: {
      shared_store: "the object_store of the period is used",
      ingestername: gone,
      mode: gone,
      ingesterdbretainperiod: gone,
      streaming_index_max_idle_file_handles: gone,
    },
  },
);

// Flags name one key each, so the stores that a user names have none.
const namedS3 = s3Block("named.", notBuilt);
const namedGcs = gcsBlock("named.");
const namedAzure = azureBlock("named.");

/** `storage_config`: where data is stored. */
export const storageConfig = field.section(
  "Where data is stored.",
  {
    aws: s3Block(""),
    azure: azureBlock(""),
    gcs: gcsBlock(""),
    filesystem: directory,
    alibabacloud: anyStore("Alibaba Cloud"),
    bos: anyStore("Baidu Cloud"),
    swift: anyStore("Swift"),
    cos: anyStore("IBM Cloud"),
    named_stores: field.section(
      "Stores by a name that a period can use as object_store.",
      {
        aws: field.sectionMap(namedS3, "S3 buckets"),
        gcs: field.sectionMap(namedGcs, "buckets of Google Cloud Storage"),
        azure: field.sectionMap(namedAzure, "containers of Azure"),
        filesystem: field.sectionMap(namedDirectory, "directories"),
        alibabacloud: anyStore("Alibaba Cloud"),
        bos: anyStore("Baidu Cloud"),
        swift: anyStore("Swift"),
        cos: anyStore("IBM Cloud"),
      },
      { unused: notBuilt },
    ),
    hedging: hedgingBlock("store.hedge"),
    object_prefix: field.text("", "folder of all keys in the bucket", "store.object-prefix"),
    segment_cache: field.section("What queries fetched from a bucket, kept on the local disk.", {
      directory: field.text(
        "",
        "its directory; default path_prefix/segment-cache",
        "store.segment-cache.directory",
      ),
      max_size: field.size(
        "10GB",
        "bytes that it takes at most; a twentieth of the disk is left free whatever it says",
        "store.segment-cache.max-size",
      ),
    }),
    max_parallel_get_chunk: field.integer(
      150,
      "objects that are read at a time",
      "store.max-parallel-get-chunk",
      { unused: "ranges of segments are read, 16 at a time" },
    ),
    max_chunk_batch_size: field.integer(
      50,
      "chunks that are read together",
      "store.max-chunk-batch-size",
      { unused: "ranges of segments are read, 16 at a time" },
    ),
    use_thanos_objstore: field.toggle(
      true,
      "which form of a store is read: the one that is filled",
      "use-thanos-objstore",
      { unused: "either form is read", holds: () => true },
    ),
    object_store: objectStoreBlock("object-store"),
    tsdb_shipper: tsdbShipper,
  },
  {
    ignored: {
      boltdb_shipper: tsdbOnly,
      boltdb: tsdbOnly,
      bigtable: tsdbOnly,
      cassandra: tsdbOnly,
      grpc_store: tsdbOnly,
      index_queries_cache_config: gone,
      index_cache_validity: gone,
      disable_broad_index_queries: gone,
      bloom_shipper: experiment,
      congestion_control: congestion,
    },
  },
);

/** `chunk_store_config`: caches of data. */
export const chunkStoreConfig = field.section(
  "Caches of data.",
  {
    chunk_cache_config: cacheBlock("store.chunks-cache"),
    chunk_cache_config_l2: cacheBlock("store.chunks-cache-l2"),
    l2_chunk_cache_handoff: field.duration(
      "0s",
      "age from which the second cache is used",
      "store.chunks-cache-l2.handoff",
    ),
    skip_query_writeback_cache_older_than: field.duration(
      "0s",
      "data older than this is not cached by queries",
      "store.skip-query-writeback-older-than",
    ),
  },
  {
    unused: "segments are cached as segment_cache says",
    ignored: {
      write_dedupe_cache_config: gone,
      cache_lookups_older_than: gone,
      max_look_back_period: "use limits_config.max_query_lookback instead",
    },
  },
);
