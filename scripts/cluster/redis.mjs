// Runs the stand-in of Redis as a process that keeps its data in memory. It takes these arguments of redis-server.
import { parseArgs } from "node:util";
import { RedisStandIn } from "../../packages/testkit/dist/index.js";

const { values } = parseArgs({
  options: {
    port: { type: "string" },
    requirepass: { type: "string", default: "" },
    bind: { type: "string" },
    save: { type: "string" },
    appendonly: { type: "string" },
  },
});
const { port, requirepass: password, bind, save, appendonly } = values;
if (bind !== "127.0.0.1" || save !== "" || appendonly !== "no")
  throw new Error('the stand-in of Redis takes --bind 127.0.0.1 --save "" --appendonly no only');
const server = new RedisStandIn({ password });
await server.open(Number(port));
console.log("Ready to accept connections");
for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => process.exit(0));
