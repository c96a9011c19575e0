import { createPushHandler, type Distributor, InflightBytes } from "@skald/distributor";
import { parseTenant, type RawHandler, type TenantOptions } from "@skald/transport";
import type { Config } from "./config/root.js";

/** Pushes by path; those of the legacy API have another JSON form. */
export function pushRoutes(
  config: Config,
  distributor: Pick<Distributor, "push">,
  tenancy: TenantOptions,
): Map<string, RawHandler> {
  const push = createPushHandler({
    distributor,
    maxReceivedBytes: config.distributor.max_recv_msg_size,
    inflight: new InflightBytes(config.distributor.max_inflight_bytes),
  });
  const styles = [
    ["/service/api/v1/push", "v1"],
    ["/loki/api/v1/push", "v1"],
    ["/api/legacy/push", "legacy"],
    ["/api/prom/push", "legacy"],
  ] as const;
  return new Map(
    styles.map(([path, style]) => [
      config.server.http_path_prefix + path,
      (request, response) =>
        push(request, response, parseTenant(request.headers["x-scope-orgid"], tenancy), style),
    ]),
  );
}
