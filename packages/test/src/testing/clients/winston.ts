// Logs every line of a file through winston-loki: winston.js URL FILE json|protobuf
import { readFileSync } from "node:fs";
import winston from "winston";
import LokiTransport from "winston-loki";

const [url = "", file = "", form = ""] = process.argv.slice(2);
const loki = new LokiTransport({
  host: url,
  json: form === "json",
  labels: { app: `winston-${form}` },
  format: winston.format.printf(({ message }) => String(message)),
  gracefulShutdown: false,
  interval: 1,
});
const log = winston.createLogger({ transports: [loki] });
for (const line of readFileSync(file, "utf8").split("\n")) log.info(line);
await loki.flush();
process.exit(0);
