// Logs every line of a file through OpenTelemetry's SDK: otel.js URL FILE json|protobuf
import { readFileSync } from "node:fs";
import { OTLPLogExporter as JsonExporter } from "@opentelemetry/exporter-logs-otlp-http";
import { OTLPLogExporter as ProtobufExporter } from "@opentelemetry/exporter-logs-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, LoggerProvider } from "@opentelemetry/sdk-logs";

const [url = "", file = "", form = ""] = process.argv.slice(2);
const options = { url: `${url}/otlp/v1/logs` };
const exporter = form === "json" ? new JsonExporter(options) : new ProtobufExporter(options);
const provider = new LoggerProvider({
  resource: resourceFromAttributes({
    "service.name": `otel-${form}`,
    "k8s.pod.name": "pod-1",
    "host.name": "box",
  }),
  processors: [new BatchLogRecordProcessor({ exporter, maxQueueSize: 100_000 })],
});
const log = provider.getLogger("lines", "1.2");
for (const [line, body] of readFileSync(file, "utf8").split("\n").entries()) {
  log.emit({ body, severityNumber: 13, severityText: "WARN", attributes: { "line.number": line } });
}
await provider.shutdown();
