// `npm start`: installs and builds what has changed, and runs the single process with the flags.
import { join } from "node:path";
import { bootstrap } from "./bootstrap.mjs";
import { runNode } from "./run-node.mjs";
import { root } from "./runtime.mjs";

const parent = process.ppid;
const node = bootstrap();
const child = runNode(node, [
  join(root, "packages/skald/bundle/main.js"),
  ...process.argv.slice(2),
]);
// npm does not pass signals on. When it is gone, this process has another parent.
setInterval(() => process.ppid !== parent && child.kill("SIGTERM"), 250).unref();
