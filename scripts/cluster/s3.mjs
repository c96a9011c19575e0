// Runs the S3 server of the tests as a process that keeps its objects in memory. Arguments: port, bucket.
import { S3Server } from "../../packages/testkit/dist/index.js";

const [port, bucket] = process.argv.slice(2);
const server = new S3Server({ port: Number(port), bucket });
await server.open();
process.send?.("ready");
// Nothing reads the list of requests.
setInterval(() => server.seen.splice(0), 1000).unref();
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => process.exit(0));
process.on("disconnect", () => process.exit(0));
