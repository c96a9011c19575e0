import { field, ringBlock } from "@skald/runtime/config";

/** Resource attributes that become labels of the stream unless a tenant's rules say else. */
const indexLabelAttributes = [
  "service.name",
  "service.namespace",
  "service.instance.id",
  "deployment.environment",
  "deployment.environment.name",
  "cloud.region",
  "cloud.availability_zone",
  "k8s.cluster.name",
  "k8s.namespace.name",
  "k8s.pod.name",
  "k8s.container.name",
  "container.name",
  "k8s.replicaset.name",
  "k8s.deployment.name",
  "k8s.statefulset.name",
  "k8s.daemonset.name",
  "k8s.cronjob.name",
  "k8s.job.name",
];

/** `distributor`: how pushes are taken in. */
export const distributorConfig = field.section("Takes pushes in, checks them and hands them on.", {
  ring: ringBlock("distributor.ring", {}, { heartbeatPeriod: "5s" }),
  max_recv_msg_size: field.size(
    "100MB",
    "largest body of a push as sent",
    "distributor.max-recv-msg-size",
  ),
  max_decompressed_size: field.size(
    "128MB",
    "largest body of a push when unpacked; 128MB at most, because it is held in memory",
    "distributor.max-decompressed-size",
  ),
  max_inflight_bytes: field.size(
    "0B",
    "bytes of pushes that may be worked on at a time; 0: an eighth of the memory",
    "distributor.max-inflight-bytes",
  ),
  otlp_config: field.section("OTLP.", {
    default_resource_attributes_as_index_labels: field.list(
      indexLabelAttributes,
      "resource attributes that become labels",
      "distributor.otlp.default_resource_attributes_as_index_labels",
    ),
  }),
});
