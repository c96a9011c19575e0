import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { invalidArgument } from "@skald/model";
import { type DoorFormat, type FieldMapping, parseMapping, runInTurns } from "@skald/push";
import { endResponse, parseForm, pathOf, readBody } from "@skald/transport";
import type { PushLimits } from "../config.js";
import type { PushDoor } from "../http.js";
import { failedResponse, type PushResponse } from "../push-response.js";
import {
  bulkAnswer,
  type DoorAnswer,
  datadogAnswer,
  documentAnswer,
  hecAnswer,
  journalAnswer,
  type LongAnswer,
  plainAnswer,
} from "./answers.js";
import { servePieces } from "./pieces.js";

/** A protocol of agents: what its bodies are, what fields mean by default, and how it answers. */
interface Door {
  readonly format: DoorFormat;
  readonly defaults: FieldMapping;
  /** Whether bodies have no end to wait for, so that they are stored in pieces as they arrive. */
  readonly inPieces?: true;
  /** Parameters that give every record a field of their name. */
  readonly fieldParams?: readonly string[];
  readonly answer: (response: PushResponse) => DoorAnswer | LongAnswer;
}

const none: FieldMapping = { labels: [], message: [], time: [], ignore: [], extra: [] };
const hecFields = ["host", "source", "sourcetype", "index"];
/** `source` mostly names one of many files or containers. */
const hec = { ...none, labels: ["host", "sourcetype", "index"] };
const elastic = { ...none, time: ["@timestamp"] };

/** All doors by name. */
export const doors = {
  json_lines: {
    format: "json_lines",
    defaults: { ...none, time: ["_time", "@timestamp", "timestamp", "time"] },
    inPieces: true,
    answer: plainAnswer,
  },
  bulk: { format: "bulk", defaults: elastic, answer: bulkAnswer },
  document: { format: "document", defaults: elastic, answer: documentAnswer },
  hec: { format: "hec", defaults: hec, answer: hecAnswer },
  hec_raw: { format: "text_lines", defaults: hec, fieldParams: hecFields, answer: hecAnswer },
  datadog: {
    format: "datadog",
    defaults: {
      ...none,
      labels: ["service", "ddsource", "hostname"],
      message: ["message"],
      time: ["timestamp", "date"],
    },
    fieldParams: ["service", "ddsource", "hostname", "ddtags"],
    answer: datadogAnswer,
  },
  journal: {
    format: "journal",
    defaults: {
      ...none,
      labels: ["_HOSTNAME", "SYSLOG_IDENTIFIER"],
      message: ["MESSAGE"],
      time: ["__REALTIME_TIMESTAMP"],
      ignore: ["__*"],
    },
    inPieces: true,
    answer: journalAnswer,
  },
} as const satisfies Readonly<Record<string, Door>>;

export type DoorName = keyof typeof doors;

export interface DoorDeps {
  readonly door: Pick<PushDoor, "serve">;
  readonly limitsOf: (
    tenant: string,
  ) => Pick<PushLimits, "agent_label_fields" | "max_label_names_per_series">;
}

/** Serves one request of a tenant; rejects only on program faults, before an answer is begun. */
export type DoorHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  tenant: string,
) => Promise<void>;

/** Serves the bodies of a door over plain node:http. */
export function createDoorHandler(name: DoorName, { door: push, limitsOf }: DoorDeps): DoorHandler {
  const door: Door = doors[name];
  return async (request, response, tenant) => {
    const isGone = () => response.destroyed;
    let answer: PushResponse;
    try {
      const { headers } = request;
      const mapping = mappingOf(door, request, limitsOf(tenant));
      const { format } = door;
      const contentEncoding = headers["content-encoding"];
      if (door.inPieces) {
        answer = await servePieces({ request, push, tenant, format, mapping, isGone });
      } else {
        answer = await push.serve(tenant, {
          isGone,
          read: async (maxBytes, book, take) => {
            const body = await readBody(request, maxBytes, book, take);
            return { format, mapping, contentEncoding, body };
          },
        });
      }
    } catch (error) {
      answer = failedResponse(error);
    }
    const { body, ...head } = door.answer(answer);
    try {
      const bytes =
        typeof body === "object" ? await runInTurns(body, { queue: tenant, isGone }) : body;
      send(response, head, bytes, answer.retryAfterSeconds);
    } catch {
      // The client has left: nobody reads the answer.
    }
  };
}

function mappingOf(
  { defaults, fieldParams = [] }: Door,
  request: IncomingMessage,
  limits: ReturnType<DoorDeps["limitsOf"]>,
): FieldMapping {
  const { url = "", headers } = request;
  const at = url.indexOf("?");
  const params = parseForm(Buffer.from(at < 0 ? "" : url.slice(at + 1)));
  const extra = fieldParams.flatMap((name) => {
    const value = params.get(name);
    return value === null || value === "" ? [] : [[name, value] as const];
  });
  const index = indexOf(pathOf(request));
  if (index !== undefined) extra.push(["_index", index]);
  const { agent_label_fields: labels, max_label_names_per_series: maxLabels } = limits;
  return parseMapping(
    { params, headers },
    { ...defaults, labels: labels.length > 0 ? labels : defaults.labels, extra },
    maxLabels,
  );
}

const indexPath = /\/elasticsearch\/([^/]+)\/_(?:bulk|doc|create)(?:\/|$)/;

/** The index that a path of Elasticsearch names. */
function indexOf(path: string): string | undefined {
  const name = indexPath.exec(path)?.[1];
  if (name === undefined) return undefined;
  try {
    return decodeURIComponent(name);
  } catch {
    throw invalidArgument("the path cannot be decoded");
  }
}

function send(
  response: ServerResponse,
  { status, contentType }: Pick<DoorAnswer, "status" | "contentType">,
  body: string | Uint8Array | undefined,
  retryAfterSeconds: number | undefined,
): void {
  if (response.destroyed) return;
  response.statusCode = status;
  if (retryAfterSeconds !== undefined) response.setHeader("retry-after", String(retryAfterSeconds));
  if (contentType !== undefined) {
    response.setHeader("content-type", contentType);
    response.setHeader("x-content-type-options", "nosniff");
  }
  // Clients of Elasticsearch refuse to talk to anything else.
  if (response.req.url?.includes("/elasticsearch/") === true) {
    response.setHeader("x-elastic-product", "Elasticsearch");
  }
  endResponse(response, typeof body === "string" ? Buffer.from(body) : body);
}

/** The tenant header of a request, or else the token of a collector or an intake, which may name a tenant too. */
export function tenantOrToken(headers: IncomingHttpHeaders): string | string[] | undefined {
  const named = headers["x-scope-orgid"];
  if (named !== undefined && named !== "") return named;
  const [, token] = /^Splunk +(\S+)$/i.exec(headers.authorization ?? "") ?? [];
  return token ?? headers["dd-api-key"];
}
