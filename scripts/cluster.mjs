// `npm run cluster [--dir folder] [--port number] [--plan JSON]`: runs the services as processes behind a gateway.
// It uses an installed Redis, or the stand-in of the tests, and the S3 server of the tests, which keeps objects in memory.
// SIGTERM and Ctrl-C end all processes.
// The plan has the differences from the usual cluster: see cluster/services.mjs.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { bootstrap } from "./bootstrap.mjs";
import { startGateway } from "./cluster/gateway.mjs";
import { takePorts } from "./cluster/ports.mjs";
import { planServices } from "./cluster/services.mjs";
import { root } from "./runtime.mjs";

const { values } = parseArgs({
  options: { dir: { type: "string" }, port: { type: "string" }, plan: { type: "string" } },
});
const node = process.env.SKALD_NO_BUILD === "1" ? process.execPath : bootstrap();
const directory =
  values.dir === undefined ? mkdtempSync(join(tmpdir(), "skald-cluster-")) : resolve(values.dir);
mkdirSync(directory, { recursive: true });
const freePort = await takePorts();
const plan = JSON.parse(values.plan ?? "{}");
const { services, links } = await planServices({ directory, root, node, freePort, plan });
const find = (name) => services.find((one) => one.name === name);
/** The HTTP ports of the ready services of a target; without a target those of all running services. */
const portsOf = (target) =>
  services
    .filter((one) => one.target !== undefined)
    .filter((one) => (target === undefined ? one.runs : one.isReady && one.target === target))
    .map(({ port }) => port);

let stopping;
const parent = process.ppid;
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => void stop(0));
process.on("disconnect", () => void stop(0));
// npm does not pass signals on. When it is gone, this process has another parent.
setInterval(() => process.ppid !== parent && stop(0), 250).unref();

try {
  await Promise.all(["redis", "s3"].map((name) => find(name).start()));
  await Promise.all(
    services
      .filter(({ target, isSpare }) => target !== undefined && !isSpare)
      .map((one) => one.start()),
  );
  const port = values.port === undefined ? await freePort() : Number(values.port);
  await startGateway(port, portsOf);
  print(port);
  const addressOf = (one) => `http://127.0.0.1:${one}`;
  process.send?.({
    ready: true,
    gateway: addressOf(port),
    services: portsOf().map(addressOf),
    syslogPorts: services.flatMap(({ syslogPort }) => syslogPort ?? []),
  });
} catch (error) {
  if (stopping === undefined) console.error(error.message);
  await stop(1);
}

// The parent process ends services with { id, name, signal }, starts them again with { id, name, start: true }, and cuts
// connections between them with { id, link, mode }.
process.on("message", async ({ id, ...told }) => {
  try {
    process.send({ id, ...(await obey(told)) });
  } catch (error) {
    process.send({ id, error: error.message });
  }
});

async function obey({ name, signal, start, link, mode }) {
  if (link !== undefined) return void (await links.get(link).set(mode));
  const service = find(name);
  await (start === true ? service.start() : service.stop(signal));
  return { pid: service.pid, port: service.port };
}

function print(port) {
  for (const { name, port: own, note } of services) {
    const end = note === undefined ? "" : ` (${note})`;
    console.log(`${name} ${name === "redis" ? "" : "http://"}127.0.0.1:${own}${end}`);
  }
  console.log(`data and logs in ${directory}`);
  console.log(`gateway http://127.0.0.1:${port}`);
}

/** Ends the services first, and then Redis and the bucket, which they need. */
function stop(code) {
  stopping ??= (async () => {
    await Promise.all(
      services.filter(({ target }) => target !== undefined).map((one) => one.stop()),
    );
    await Promise.all(["redis", "s3"].map((name) => find(name)?.stop()));
    for (const link of links.values()) link.close();
    if (values.dir === undefined) rmSync(directory, { recursive: true, force: true });
    process.exit(code);
  })();
  return stopping;
}
