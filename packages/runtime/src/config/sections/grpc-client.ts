import * as field from "../field.js";
import { tlsClientFields } from "./tls.js";

/** How a service calls another one; the flags start with the prefix. */
export function grpcClientBlock(prefix: string) {
  return field.section("How calls are made.", {
    max_recv_msg_size: field.size("100MB", "largest answer", `${prefix}.grpc-max-recv-msg-size`),
    max_send_msg_size: field.size("100MB", "largest request", `${prefix}.grpc-max-send-msg-size`),
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
    keepalive_time: field.duration("20s", "pause between pings", `${prefix}.keepalive-time`),
    keepalive_timeout: field.duration(
      "10s",
      "time that an answer to a ping may take",
      `${prefix}.keepalive-timeout`,
    ),
    cluster_validation: field.section("Refusal of calls from other clusters.", {
      label: field.text("", "name of the cluster", `${prefix}.cluster-validation.label`),
    }),
  });
}
