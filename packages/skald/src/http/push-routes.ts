import { createPushHandler, type Distributor, InflightBytes } from "@skald/distributor";
import { parseTenant, type RawHandler, type TenantOptions } from "@skald/transport";
import type { Config } from "../config/root.js";
import { memoryBytes } from "../memory.js";
import { pushDocs } from "./push-docs.js";

const tenantHeader = "x-scope-orgid";
/** Pushes take more room than they came with, so they get a part of the memory only. */
const memoryShare = 1 / 8;

/** Pushes by path; those of the legacy API have another JSON form, those of OTLP others altogether. */
export function pushRoutes(
  config: Config,
  distributor: Pick<Distributor, "push">,
  tenancy: TenantOptions,
): Map<string, RawHandler> {
  const { max_recv_msg_size, max_inflight_bytes } = config.distributor;
  const inflightBytes =
    max_inflight_bytes || Math.max(max_recv_msg_size, memoryBytes() * memoryShare);
  const push = createPushHandler({
    distributor,
    maxReceivedBytes: max_recv_msg_size,
    inflight: new InflightBytes(inflightBytes),
  });
  const styles = [
    ["/service/api/v1/push", "v1"],
    ["/loki/api/v1/push", "v1"],
    ["/api/legacy/push", "legacy"],
    ["/api/prom/push", "legacy"],
    ["/otlp/v1/logs", "otlp"],
  ] as const;
  return new Map(
    styles.map(([path, style]) => {
      const handler: RawHandler = (request, response) =>
        push(request, response, parseTenant(request.headers[tenantHeader], tenancy), style);
      return [path, Object.assign(handler, { docs: pushDocs[style] })];
    }),
  );
}
