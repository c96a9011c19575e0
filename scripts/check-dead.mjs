// Fails when nothing uses a file, an export or a dependency. Knip finds them; knip.json is its configuration.
import { spawnSync } from "node:child_process";

const args = ["node_modules/knip/bin/knip.js", "--no-progress", "--no-config-hints"];
const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
if (status === 0) console.log("dead code: none");
process.exit(status ?? 1);
