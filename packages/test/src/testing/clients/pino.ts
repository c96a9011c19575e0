// Logs every line of a file through pino-loki: pino.js URL FILE
import { readFileSync } from "node:fs";
import pino from "pino";
import { pinoLoki } from "pino-loki";

const [url = "", file = ""] = process.argv.slice(2);
const stream = pinoLoki({ host: url, labels: { app: "pino" }, batching: { interval: 1 } });
const log = pino({ base: null }, stream);
for (const line of readFileSync(file, "utf8").split("\n")) log.info(line);
stream.end();
