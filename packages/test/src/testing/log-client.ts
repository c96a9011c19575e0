// Pushes every line of a file with a client library: log-client.js pino|winston|otel URL FILE json|protobuf
// Each library is loaded only by its own run, because a load takes up to a second.
import { readFileSync } from "node:fs";

const [client = "", url = "", file = "", form = ""] = process.argv.slice(2);
const lines = readFileSync(file, "utf8").split("\n");
const run = { pino: runPino, winston: runWinston, otel: runOpenTelemetry }[client];
await run?.();

async function runPino(): Promise<void> {
  const { default: pino } = await import("pino");
  const { pinoLoki } = await import("pino-loki");
  const stream = pinoLoki({ host: url, labels: { app: "pino" }, batching: { interval: 1 } });
  const log = pino({ base: null }, stream);
  for (const line of lines) log.info(line);
  stream.end();
}

async function runWinston(): Promise<void> {
  const { default: winston } = await import("winston");
  const { default: LokiTransport } = await import("winston-loki");
  const loki = new LokiTransport({
    host: url,
    json: form === "json",
    labels: { app: `winston-${form}` },
    format: winston.format.printf(({ message }) => String(message)),
    gracefulShutdown: false,
    interval: 1,
  });
  const log = winston.createLogger({ transports: [loki] });
  for (const line of lines) log.info(line);
  await loki.flush();
  process.exit(0);
}

async function runOpenTelemetry(): Promise<void> {
  const { OTLPLogExporter } =
    form === "json"
      ? await import("@opentelemetry/exporter-logs-otlp-http")
      : await import("@opentelemetry/exporter-logs-otlp-proto");
  const { resourceFromAttributes } = await import("@opentelemetry/resources");
  const { BatchLogRecordProcessor, LoggerProvider } = await import("@opentelemetry/sdk-logs");
  const exporter = new OTLPLogExporter({ url: `${url}/otlp/v1/logs` });
  const provider = new LoggerProvider({
    resource: resourceFromAttributes({
      "service.name": `otel-${form}`,
      "k8s.pod.name": "pod-1",
      "host.name": "box",
    }),
    processors: [new BatchLogRecordProcessor({ exporter, maxQueueSize: 100_000 })],
  });
  const log = provider.getLogger("lines", "1.2");
  for (const [line, body] of lines.entries()) {
    const attributes = { "line.number": line };
    log.emit({ body, severityNumber: 13, severityText: "WARN", attributes });
  }
  await provider.shutdown();
}
