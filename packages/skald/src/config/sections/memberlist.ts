import { field, tlsClientFields } from "@skald/runtime/config";

const noGossip = "rings are kept in Redis, nothing is gossiped";

const flag = (name: string): string => `memberlist.${name}`;

const gossip = {
  node_name: field.text("", "name; empty: the host name", flag("nodename")),
  randomize_node_name: field.toggle(true, "add a random end", flag("randomize-node-name")),
  stream_timeout: field.duration("2s", "time limit of TCP", flag("stream-timeout")),
  retransmit_factor: field.integer(
    4,
    "how often a message is passed on",
    flag("retransmit-factor"),
  ),
  pull_push_interval: field.duration("30s", "pause between full syncs", flag("pullpush-interval")),
  gossip_interval: field.duration("200ms", "pause between messages", flag("gossip-interval")),
  gossip_nodes: field.integer(3, "members that get a message", flag("gossip-nodes")),
  gossip_to_dead_nodes_time: field.duration(
    "30s",
    "time for which dead members get messages",
    flag("gossip-to-dead-nodes-time"),
  ),
  dead_node_reclaim_time: field.duration(
    "0s",
    "time after which the name of a dead member is free",
    flag("dead-node-reclaim-time"),
  ),
  compression_enabled: field.toggle(true, "compress messages", flag("compression-enabled")),
  compression_algorithm: field.text("lzw", "how", flag("compression-algorithm")),
  notify_interval: field.duration("0s", "pause between notices", flag("notify-interval")),
  received_messages_queue_size: field.integer(
    1024,
    "messages that may wait",
    flag("received-messages-queue-size"),
  ),
  processed_messages_queue_size: field.integer(
    1024,
    "messages that may wait when read",
    flag("processed-messages-queue-size"),
  ),
  message_history_buffer_bytes: field.size(
    "0B",
    "messages kept for debugging",
    flag("message-history-buffer-bytes"),
  ),
  watch_prefix_buffer_size: field.integer(
    128,
    "changes that may wait",
    flag("watch-prefix-buffer-size"),
  ),
};

const joining = {
  advertise_addr: field.text("", "address told to others", flag("advertise-addr")),
  advertise_port: field.integer(7946, "port told to others", flag("advertise-port")),
  cluster_label: field.text("", "name of the cluster", flag("cluster-label")),
  cluster_label_verification_disabled: field.toggle(
    false,
    "accept other clusters",
    flag("cluster-label-verification-disabled"),
  ),
  join_members: field.list(
    [],
    "members to join, host and port; rings are not kept by gossip",
    flag("join"),
    {
      used: true,
    },
  ),
  min_join_backoff: field.duration("1s", "first pause", flag("min-join-backoff")),
  max_join_backoff: field.duration("1m", "longest pause", flag("max-join-backoff")),
  max_join_retries: field.integer(10, "tries", flag("max-join-retries")),
  abort_if_cluster_fast_join_fails: field.toggle(
    false,
    "end when the first join fails",
    flag("abort-if-fast-join-fails"),
  ),
  abort_if_cluster_fast_join_fails_min_nodes: field.integer(
    1,
    "members that it must reach",
    flag("abort-if-fast-join-fails-min-nodes"),
  ),
  abort_if_cluster_join_fails: field.toggle(
    false,
    "end when no member is reached",
    flag("abort-if-join-fails"),
  ),
  rejoin_interval: field.duration("0s", "pause between joins; 0: once", flag("rejoin-interval")),
  rejoin_seed_nodes: field.list([], "members to join then", flag("rejoin-seed-nodes")),
  left_ingesters_timeout: field.duration(
    "5m",
    "time to remember those that left",
    flag("left-ingesters-timeout"),
  ),
  obsolete_entries_timeout: field.duration(
    "30s",
    "time to remember removed keys",
    flag("obsolete-entries-timeout"),
  ),
  leave_timeout: field.duration("20s", "time limit to leave", flag("leave-timeout")),
  broadcast_timeout_for_local_updates_on_shutdown: field.duration(
    "10s",
    "time for last messages",
    flag("broadcast-timeout-for-local-updates-on-shutdown"),
  ),
};

const transport = {
  bind_addr: field.list([], "addresses to listen on", flag("bind-addr")),
  bind_port: field.integer(7946, "port to listen on", flag("bind-port"), { max: 65_535 }),
  packet_dial_timeout: field.duration("2s", "time limit to connect", flag("packet-dial-timeout")),
  packet_write_timeout: field.duration("5s", "time limit to write", flag("packet-write-timeout")),
  max_concurrent_writes: field.integer(3, "writes at a time", flag("max-concurrent-writes")),
  acquire_writer_timeout: field.duration(
    "250ms",
    "time to wait for a writer",
    flag("acquire-writer-timeout"),
  ),
  ...tlsClientFields("memberlist"),
};

/** `memberlist`: gossip between instances. */
export const memberlistConfig = field.section(
  "Gossip between instances.",
  {
    ...gossip,
    ...joining,
    ...transport,
  },
  {
    unused: noGossip,
    ignored: { zone_aware_routing: noGossip, propagation_delay_tracker: noGossip },
  },
);
