import { invalidArgument } from "@skald/model";
import {
  type BuildInfo,
  describeNotRunning,
  formatServices,
  type Logger,
  type Metrics,
  type NamedState,
} from "@skald/runtime";
import {
  type HttpRequest,
  type HttpResponse,
  jsonResponse,
  type Route,
  textResponse,
} from "@skald/transport";
import { operatorDocs } from "./operator-docs.js";
import { statusDocs } from "./status-docs.js";

export type ConfigMode = "full" | "diffs" | "defaults";

export interface StatusDeps {
  readonly build: BuildInfo;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly services: () => readonly NamedState[];
  /** Why a process whose services all run can do no work now. */
  readonly unready?: () => string | undefined;
  /** Configuration as YAML. */
  readonly configYaml: (mode: ConfigMode) => string;
}

/** What every process answers about itself, without a tenant. */
export function statusRoutes(deps: StatusDeps): Route[] {
  const { log, metrics } = deps;
  const get = (
    path: string,
    endpoint: keyof typeof statusDocs,
    handler: Route["handler"],
  ): Route => ({ methods: ["GET"], path, handler, docs: statusDocs[endpoint] });
  const ready = () => {
    const reason = describeNotRunning(deps.services()) ?? deps.unready?.();
    return reason === undefined
      ? textResponse(200, "ready\n")
      : textResponse(503, ensureLine(reason));
  };
  const logLevel = () => jsonResponse(200, { message: `Current log level is ${log.level()}` });
  const readMetrics = async (request: HttpRequest): Promise<HttpResponse> => {
    const { contentType, text } = await metrics.read(request.headers.accept);
    return { status: 200, headers: { "content-type": contentType }, body: text };
  };
  return [
    get("/ready", "ready", ready),
    get("/metrics", "metrics", readMetrics),
    get("/config", "config", (request) =>
      textResponse(200, deps.configYaml(configMode(request.params.get("mode")))),
    ),
    get("/services", "services", () => textResponse(200, formatServices(deps.services()))),
    get("/log_level", "log_level", logLevel),
    {
      methods: ["POST"],
      path: "/log_level",
      handler: (request) => setLogLevel(log, request),
      docs: statusDocs.set_log_level,
    },
    ...["/service/api/v1", "/loki/api/v1"].map((prefix) =>
      get(`${prefix}/status/buildinfo`, "buildinfo", () =>
        jsonResponse(200, buildInfoBody(deps.build)),
      ),
    ),
  ];
}

/** The page of gossip rings, which operators' scripts look for. */
export function memberlistRoutes(): Route[] {
  const handler = () => textResponse(200, "This instance doesn't use memberlist.\n");
  return [{ methods: ["GET"], path: "/memberlist", handler, docs: operatorDocs.memberlist }];
}

function ensureLine(text: string): string {
  return text.endsWith("\n") ? text : `${text}\n`;
}

function configMode(mode: string | null): ConfigMode {
  switch (mode) {
    case null:
    case "":
      return "full";
    case "diff":
    case "diffs":
      return "diffs";
    case "defaults":
      return "defaults";
    default:
      throw invalidArgument(`unknown mode "${mode}": use diffs or defaults`);
  }
}

function setLogLevel(log: Logger, request: HttpRequest): HttpResponse {
  const level = request.params.get("log_level") ?? "";
  try {
    log.setLevel(level);
  } catch (error) {
    return jsonResponse(400, {
      status: "failed",
      message: error instanceof Error ? error.message : String(error),
    });
  }
  return jsonResponse(200, { status: "success", message: `Log level set to ${level}` });
}

function buildInfoBody({ version, revision, branch, buildUser, buildDate, goVersion }: BuildInfo) {
  return { version, revision, branch, buildUser, buildDate, goVersion };
}
