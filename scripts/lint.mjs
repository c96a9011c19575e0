import { spawnSync } from "node:child_process";
import { root } from "./runtime.mjs";

const checks = [
  [process.execPath, ["scripts/check-layers.mjs"]],
  [process.execPath, ["scripts/check-folders.mjs"]],
  [process.execPath, ["scripts/check-dead.mjs"]],
  [
    process.execPath,
    ["node_modules/@biomejs/biome/bin/biome", "check", "--error-on-warnings", "."],
  ],
  [process.execPath, ["scripts/docs.mjs", "--check"]],
  [process.execPath, ["scripts/proto.mjs", "--check"]],
];
for (const [command, args] of checks) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}
