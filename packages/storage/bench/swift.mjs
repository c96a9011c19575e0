// Runs the tests of the S3 store against OpenStack Swift with its s3api middleware, a server that is not ours.
// Needs root on Debian: apt-get install --no-install-recommends swift-proxy swift-account swift-container swift-object memcached
//
//     node packages/storage/bench/swift.mjs            the suite
//     node packages/storage/bench/swift.mjs COMMAND... a command of yours, with SKALD_TEST_S3 set
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const directory = mkdtempSync(join(tmpdir(), "skald-swift-"));
const children = [];
let code = 1;
try {
  const ports = await freePorts(5);
  configure(ports);
  await startAll(ports);
  const key = encodeURIComponent("test:tester");
  const url = `s3://${key}:testing@127.0.0.1:${ports.proxy}/skald-test`;
  process.stdout.write(`object store: ${version()}, s3api, at 127.0.0.1:${ports.proxy}\n`);
  const [command, ...args] =
    process.argv.length > 2
      ? process.argv.slice(2)
      : [
          process.execPath,
          "node_modules/jest/bin/jest.js",
          "packages/storage/dist/object-store/s3",
        ];
  const env = { ...process.env, SKALD_TEST_S3: url };
  code = await ended(spawn(command, args, { cwd: root, stdio: "inherit", env }));
} finally {
  for (const child of children) child.kill("SIGKILL");
  rmSync(directory, { recursive: true, force: true });
}
process.exit(code);

function version() {
  const { stdout } = spawnSync("dpkg-query", ["-W", "-f=${Version}", "swift-proxy"]);
  return `OpenStack Swift ${stdout}`;
}

async function freePorts() {
  const names = ["proxy", "account", "container", "object", "memcached"];
  const servers = await Promise.all(
    names.map(
      () =>
        new Promise((resolve) => {
          const server = createServer().listen(0, "127.0.0.1", () => resolve(server));
        }),
    ),
  );
  const ports = Object.fromEntries(names.map((name, i) => [name, servers[i].address().port]));
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** One proxy, one device, one copy. */
function configure(ports) {
  const shared = `[DEFAULT]
bind_ip = 127.0.0.1
swift_dir = ${directory}
user = root
workers = 0
devices = ${directory}/devices
mount_check = false
log_address = ${directory}/log
`;
  mkdirSync(join(directory, "devices/d"), { recursive: true });
  writeFileSync(
    join(directory, "swift.conf"),
    `[swift-hash]
swift_hash_path_prefix = skald
swift_hash_path_suffix = test
[storage-policy:0]
name = one
default = yes
`,
  );
  for (const kind of ["account", "container", "object"]) {
    writeFileSync(
      join(directory, `${kind}.conf`),
      `${shared}bind_port = ${ports[kind]}
[pipeline:main]
pipeline = ${kind}-server
[app:${kind}-server]
use = egg:swift#${kind}
`,
    );
    ring(kind, ports[kind]);
  }
  const filters = {
    catch_errors: "catch_errors",
    gatekeeper: "gatekeeper",
    healthcheck: "healthcheck",
    cache: `memcache\nmemcache_servers = 127.0.0.1:${ports.memcached}`,
    listing_formats: "listing_formats",
    bulk: "bulk",
    s3api: "s3api\nlocation = us-east-1",
    tempauth: "tempauth\nuser_test_tester = testing .admin",
    copy: "copy",
    slo: "slo",
    dlo: "dlo",
    versioned_writes: "versioned_writes\nallow_versioned_writes = true",
  };
  const sections = Object.entries(filters).map(
    ([n, use]) => `[filter:${n}]\nuse = egg:swift#${use}\n`,
  );
  writeFileSync(
    join(directory, "proxy.conf"),
    `${shared}bind_port = ${ports.proxy}
[pipeline:main]
pipeline = ${Object.keys(filters).join(" ")} proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
${sections.join("")}`,
  );
}

function ring(kind, port) {
  const builder = join(directory, `${kind}.builder`);
  for (const args of [
    ["create", "4", "1", "1"],
    ["add", `r1z1-127.0.0.1:${port}/d`, "1"],
    ["rebalance"],
  ])
    spawnSync("swift-ring-builder", [builder, ...args]);
}

async function startAll(ports) {
  start("memcached", ["-u", "root", "-l", "127.0.0.1", "-p", String(ports.memcached)]);
  for (const kind of ["account", "container", "object", "proxy"])
    start(`swift-${kind}-server`, [join(directory, `${kind}.conf`)]);
  for (let tries = 0; ; tries++) {
    const answer = await fetch(`http://127.0.0.1:${ports.proxy}/healthcheck`).catch(
      () => undefined,
    );
    if (answer?.ok) return;
    if (tries === 300) throw new Error("swift does not start");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function start(command, args) {
  const quiet = process.env.SWIFT_LOG === undefined ? "ignore" : "inherit";
  children.push(spawn(command, args, { stdio: ["ignore", quiet, quiet] }));
}

function ended(child) {
  return new Promise((resolve) => child.once("exit", (status) => resolve(status ?? 1)));
}
