import type { EndpointDocs } from "@skald/transport";

const status = { group: "Status", tenant: "none" } as const;

/** What is to be known about the endpoints of every process. */
export const statusDocs = {
  ready: {
    ...status,
    says: "Whether the process can be given work.",
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
} as const satisfies Readonly<Record<string, EndpointDocs>>;
