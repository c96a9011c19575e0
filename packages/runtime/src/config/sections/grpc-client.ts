import * as field from "../field.js";
import { noCalls } from "../reasons.js";
import { backoffBlock } from "./backoff.js";
import { tlsClientFields } from "./tls.js";

const noRateLimit = "whoever calls knows how much it may ask for";

/** How a service calls another one; the flags start with the prefix. */
export function grpcClientBlock(prefix: string, options: { used?: boolean } = {}) {
  return field.section(
    "How calls are made.",
    {
      max_recv_msg_size: field.size("100MB", "largest answer", `${prefix}.grpc-max-recv-msg-size`),
      max_send_msg_size: field.size("100MB", "largest request", `${prefix}.grpc-max-send-msg-size`),
      grpc_compression: field.choice(
        "",
        ["", "gzip", "snappy"],
        "compression of requests",
        `${prefix}.grpc-compression`,
        { unused: "calls are not compressed: what is large in them is already" },
      ),
      rate_limit: field.float(
        0,
        "calls a second; 0: no limit",
        `${prefix}.grpc-client-rate-limit`,
        { unused: noRateLimit },
      ),
      rate_limit_burst: field.integer(
        0,
        "calls at once; 0: rate_limit",
        `${prefix}.grpc-client-rate-limit-burst`,
        { unused: noRateLimit },
      ),
      backoff_on_ratelimits: field.toggle(
        false,
        "try again when the other side limits the rate",
        `${prefix}.backoff-on-ratelimits`,
        { unused: noRateLimit },
      ),
      backoff_config: backoffBlock(
        {
          min: `${prefix}.backoff-min-period`,
          max: `${prefix}.backoff-max-period`,
          retries: `${prefix}.backoff-retries`,
        },
        {
          ...{ min: "100ms", max: "10s", retries: 10 },
          unused: "what failed is for whoever called to ask again",
        },
      ),
      ...tlsClientFields(prefix),
      connect_timeout: field.duration("5s", "time limit to connect", `${prefix}.connect-timeout`),
      connect_backoff_base_delay: field.duration(
        "1s",
        "first pause between connects",
        `${prefix}.connect-backoff-base-delay`,
      ),
      connect_backoff_max_delay: field.duration(
        "5s",
        "longest pause between connects",
        `${prefix}.connect-backoff-max-delay`,
      ),
      initial_stream_window_size: field.size(
        "65535",
        "window of a stream",
        `${prefix}.initial-stream-window-size`,
      ),
      initial_connection_window_size: field.size(
        "65535",
        "window of a connection",
        `${prefix}.initial-connection-window-size`,
        { unused: "it is four times the window of a stream" },
      ),
      keepalive_time: field.duration("20s", "pause between pings", `${prefix}.keepalive-time`),
      keepalive_timeout: field.duration(
        "10s",
        "time that an answer to a ping may take",
        `${prefix}.keepalive-timeout`,
      ),
      cluster_validation: field.section("Refusal of calls from other clusters.", {
        label: field.text("", "name of the cluster", `${prefix}.cluster-validation.label`),
      }),
    },
    options.used === true ? { used: true } : { unused: noCalls },
  );
}
