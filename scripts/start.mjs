// `npm start`: installs and builds what changed, then runs the single process; flags pass through.
import { join } from "node:path";
import { bootstrap, root } from "./bootstrap.mjs";
import { runNode } from "./run-node.mjs";

const node = bootstrap();
runNode(node, [join(root, "packages/skald/dist/main.js"), ...process.argv.slice(2)]);
