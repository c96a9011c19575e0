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
  type EndpointDocs,
  type HttpRequest,
  type HttpResponse,
  jsonResponse,
  type Route,
  textResponse,
} from "@skald/transport";

export type ConfigMode = "full" | "diffs" | "defaults";

export interface StatusDeps {
  readonly build: BuildInfo;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly services: () => readonly NamedState[];
  /** Says why the process cannot work although all services run. */
  readonly unready?: () => string | undefined;
  /** Says what is wrong although the process works. */
  readonly complaints?: () => readonly string[];
  /** The configuration as YAML. */
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
  const ready = ({ params }: HttpRequest) => {
    const reason = describeNotRunning(deps.services()) ?? deps.unready?.();
    const complaints = params.has("verbose") ? (deps.complaints?.() ?? []) : [];
    const text = [reason ?? "ready", ...complaints].map(ensureLine).join("");
    return textResponse(reason === undefined ? 200 : 503, text);
  };
  const logLevel = () => jsonResponse(200, { message: `Current log level is ${log.level()}` });
  const readMetrics = async (request: HttpRequest): Promise<HttpResponse> => {
    const { contentType, text } = await metrics.read(request.headers.accept);
    return { status: 200, headers: { "content-type": contentType }, body: text };
  };
  /** By mode: the configuration stays as it is, and its text takes some 10 ms to make. */
  const configTexts = new Map<ConfigMode, string>();
  const configText = (mode: ConfigMode) => {
    const text = configTexts.get(mode) ?? deps.configYaml(mode);
    configTexts.set(mode, text);
    return text;
  };
  return [
    get("/ready", "ready", ready),
    get("/metrics", "metrics", readMetrics),
    get("/config", "config", (request) =>
      textResponse(200, configText(configMode(request.params.get("mode")))),
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
    // Scripts of operators look for the page of gossip rings.
    get("/memberlist", "memberlist", () =>
      textResponse(200, "This instance doesn't use memberlist.\n"),
    ),
  ];
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

const status = { group: "Status", tenant: "none" } as const;

const statusDocs = {
  ready: {
    ...status,
    says: "Whether the process can be given work.",
    params: [
      {
        name: "verbose",
        type: "text",
        says: "When it is there, lines follow that say what is wrong although the process works, such as `disk slow`.",
      },
    ],
    answers: { 200: "`ready`." },
    errors: { 503: "it starts, stops, or cannot work, with the reason" },
    example: { status: 200, contains: "ready" },
  },
  metrics: {
    ...status,
    says: "Metrics for Prometheus, or in the OpenMetrics form to who accepts that.",
    answers: { 200: "Text." },
    example: { status: 200, contains: "# HELP" },
  },
  config: {
    ...status,
    says: "The configuration, with secrets masked.",
    params: [
      {
        name: "mode",
        type: "text",
        values: ["diffs", "diff", "defaults"],
        fallback: "all that holds",
        says: "What differs from the defaults, or the defaults.",
      },
    ],
    answers: { 200: "YAML as text." },
    errors: { 400: "another mode" },
    example: { params: { mode: "diffs" }, status: 200, contains: "server:" },
    differs: "`diffs` works as documented; all secrets are masked",
  },
  services: {
    ...status,
    says: "The parts of the process with their states.",
    answers: { 200: "Text: a line `name => state` for each." },
    example: { status: 200, contains: "server => Running" },
  },
  log_level: {
    ...status,
    says: "Which messages are logged.",
    answers: { 200: "`{message}`." },
    example: { status: 200, contains: "Current log level is" },
  },
  set_log_level: {
    ...status,
    says: "Changes which messages are logged, until the process ends.",
    params: [
      {
        name: "log_level",
        type: "text",
        required: true,
        values: ["debug", "info", "warn", "error"],
        says: "The least level.",
      },
    ],
    answers: { 200: "`{status, message}`." },
    errors: { 400: '`{"status":"failed","message":text}`' },
    example: { params: { log_level: "info" }, status: 200, contains: "Log level set to info" },
  },
  buildinfo: {
    ...status,
    says: "What was built, and which version of the API it speaks.",
    answers: { 200: "`{version, revision, branch, buildUser, buildDate, goVersion}`." },
    example: { status: 200, contains: '"version":' },
  },
  memberlist: {
    ...{ group: "Operation", tenant: "none" },
    says: "The members of a gossip ring.",
    answers: {
      200: "Text that says that there is none: rings are kept in Redis or in the process.",
    },
    example: { status: 200, contains: "doesn't use memberlist" },
  },
} as const satisfies Readonly<Record<string, EndpointDocs>>;
