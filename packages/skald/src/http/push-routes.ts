import { createPushHandler, type PushDoor } from "@skald/distributor";
import {
  type EndpointDocs,
  parseTenant,
  type RawHandler,
  type TenantOptions,
} from "@skald/transport";

const tenantHeader = "x-scope-orgid";

/** The handlers of pushes by path: the API, the legacy API with another JSON form, and OTLP. */
export function pushRoutes(
  door: Pick<PushDoor, "serve">,
  tenancy: TenantOptions,
): Map<string, RawHandler> {
  const push = createPushHandler(door);
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

const values = [["$NOW", "paid order 7", { trace_id: "ab12" }]];
const json = { "content-type": "application/json" };

export const pushErrors = {
  260: "ingestion of the tenant is blocked; the status is `block_ingestion_status_code`",
  400: "a body that cannot be read, or rows that break a limit: the others are stored",
  413: "larger than `distributor.max_recv_msg_size`, or than `distributor.max_decompressed_size` when unpacked; larger than 32 MiB and 32 times its compressed size",
  422: "no streams at all",
  429: "above a rate of the tenant, or its pushes hold half of `distributor.max_inflight_bytes`: nothing is stored",
  503: "pushes hold `distributor.max_inflight_bytes`, the body arrives too slowly, or the disk is full",
};

const push: EndpointDocs = {
  group: "Ingest",
  says: "Stores log lines.",
  tenant: "one",
  bodies: {
    "application/json": "`{streams: [{stream: labels, values: [[ns, line, metadata?]]}]}`",
    "application/x-protobuf": "`PushRequest`, in Snappy's block format",
  },
  answers: { 204: "Nothing: all is stored, and can be queried." },
  errors: pushErrors,
  example: {
    headers: json,
    body: JSON.stringify({ streams: [{ stream: { app: "shop" }, values }] }),
    status: 204,
  },
};

const legacy: EndpointDocs = {
  ...push,
  says: "Stores log lines that come in the old form; use `push`.",
  bodies: {
    ...push.bodies,
    "application/json": "`{streams: [{labels: text, entries: [{ts, line}]}]}`",
  },
  example: {
    headers: json,
    body: '{"streams":[{"labels":"{a=\\"b\\"}","entries":[]}]}',
    status: 204,
  },
};

const otlp: EndpointDocs = {
  group: "Ingest",
  says: "Stores log records of OpenTelemetry. Exporters are given the address up to `/otlp`.",
  tenant: "one",
  bodies: {
    "application/x-protobuf": "`ExportLogsServiceRequest`",
    "application/json": "the same in OTLP's JSON form",
  },
  answers: { 204: "Nothing: all is stored, and can be queried." },
  errors: pushErrors,
  example: {
    headers: json,
    body: JSON.stringify({
      resourceLogs: [
        {
          resource: { attributes: [{ key: "service.name", value: { stringValue: "shop" } }] },
          scopeLogs: [{ logRecords: [{ timeUnixNano: "$NOW", body: { stringValue: "paid" } }] }],
        },
      ],
    }),
    status: 204,
  },
};

const pushDocs = { v1: push, legacy, otlp } as const;
