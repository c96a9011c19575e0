// `npm start`: installs and builds what changed, then runs the single process; flags pass through.
import { join } from "node:path";
import { bootstrap, root } from "./bootstrap.mjs";
import { runNode } from "./run-node.mjs";

const parent = process.ppid;
const node = bootstrap();
const child = runNode(node, [
  join(root, "packages/skald/bundle/main.js"),
  ...process.argv.slice(2),
]);
// npm does not pass a signal on: when it is gone, this process has another parent.
setInterval(() => process.ppid !== parent && child.kill("SIGTERM"), 250).unref();
