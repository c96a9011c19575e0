import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { freePort } from "@skald/testkit";
import { needs } from "@skald/testkit/needs";
import { readText, root } from "../testing/deploy/repository.js";
import { makeFolder, removeFolders, waitFor } from "../testing/server.js";

interface Route {
  readonly service: string;
  readonly pattern: string;
  readonly refused?: "all" | "changes";
}
interface Routes {
  readonly routes: readonly Route[];
  readonly services: readonly string[];
  readonly refusal: string;
  routeOf(path: string): Route;
  isRefused(route: Route, method: string): boolean;
}

const { routes, services, refusal, routeOf, isRefused }: Routes = await import(
  join(root, "deploy/gateway/routes.mjs")
);

interface Endpoint {
  readonly methods: readonly string[];
  readonly paths: readonly string[];
  readonly targets: readonly string[];
}
const { wholeApi }: { wholeApi(): readonly Endpoint[] } = await import(
  join(root, "packages/skald/dist/index.js")
);

/** Each path of the API under each of its names, by each method, with the targets that serve it. */
const cells = wholeApi().flatMap(({ methods, paths, targets }) =>
  paths.flatMap((path) =>
    methods.map((method) => ({ method, path: path.replaceAll(/:\w+/g, "name"), targets })),
  ),
);
/** What only an operator may send. */
const operators = /^(POST \/(\w+\/)?ring|POST \/log_level|\w+ \/(flush|ingester\/.*|debug\/.*))$/;

afterAll(removeFolders);

describe("the routes of the gateway", () => {
  it.each(cells)("give $method $path to a service that has it, or to none", (cell) => {
    const { method, path, targets } = cell;
    const route = routeOf(path);
    if (!targets.includes(route.service)) expect([path, route.service]).toEqual([path, targets]);
    expect(isRefused(route, method)).toBe(operators.test(`${method} ${path}`));
  });

  it("are each used by a path of the API", () => {
    const used = new Set(cells.map(({ path }) => routeOf(path)));
    expect(routes.filter((route) => !used.has(route))).toEqual([]);
  });
});

describe("nginx by the routes", () => {
  /** Paths of the API under each of their names, and what else is sent to `/`. */
  const asked = [...cells, { method: "GET", path: "/none" }, { method: "PUT", path: "/ring" }];
  const servers: Server[] = [];
  let url = "";
  let kill = () => {};

  /** Starts a server that answers with a name, or one that takes requests and ends without an answer. */
  async function serve(name: string, ends = false): Promise<string> {
    const server = createServer((request, response) => {
      request.on("data", () => undefined);
      request.on("end", () => (ends ? request.socket.destroy() : response.end(name)));
    }).listen(0, "127.0.0.1");
    servers.push(server);
    await once(server, "listening");
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  beforeAll(async () => {
    let text = readText("deploy/k8s/overlays/cluster/nginx.conf");
    for (const name of services) {
      const address = await serve(name);
      text = text.replaceAll(`server ${name}:3100`, `server ${address}`);
    }
    const ending = await serve("", true);
    const gone = `127.0.0.1:${await freePort()}`;
    for (const name of ["query-frontend", "compactor"])
      text = text.replace(
        new RegExp(`(upstream ${name} \\{\\s+server )\\S+(.*\\s+server )\\S+`),
        `$1${ending}$2${gone}`,
      );
    const port = await freePort();
    const folder = makeFolder();
    text = text
      .replace("listen 3100", `listen 127.0.0.1:${port}`)
      .replaceAll(" /tmp/", ` ${folder}/`);
    writeFileSync(join(folder, "nginx.conf"), text);
    url = `http://127.0.0.1:${port}`;
    const args = ["-c", join(folder, "nginx.conf"), "-g", "daemon off;", "-e", "stderr"];
    const child = spawn("nginx", args, { stdio: "ignore" });
    const isGone = new Promise((resolve) => child.once("error", () => resolve("none")));
    kill = () => void child.kill("SIGTERM");
    const answers = () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      );
    await Promise.race([isGone, waitFor(answers)]);
  });

  afterAll(() => {
    kill();
    for (const server of servers) server.close().closeAllConnections();
  });

  needs("nginx")("passes on and refuses as they say", async () => {
    for (const { method, path } of asked) {
      const route = routeOf(path);
      // One frontend of three answers, and one compactor of three, so that changes meet one that does not.
      if (route.service === "compactor" && method !== "GET") continue;
      const answer = await fetch(`${url}${path}?forget=a`, { method });
      const wanted = isRefused(route, method) ? [403, refusal] : [200, route.service];
      expect([method, path, answer.status, await answer.text()]).toEqual([method, path, ...wanted]);
    }
  });

  needs("nginx")(
    "sends queries to another frontend when one ends, and a delete request to none",
    async () => {
      const body = "query={a%3D%22b%22}";
      const type = { "content-type": "application/x-www-form-urlencoded" };
      const ask = async (path: string, init: RequestInit) =>
        (await fetch(`${url}${path}`, init)).status;
      const many = (path: string, init: RequestInit = {}) =>
        Promise.all(Array.from({ length: 12 }, () => ask(path, init)));
      expect(new Set(await many("/loki/api/v1/query"))).toEqual(new Set([200]));
      const post = { method: "POST", body, headers: type };
      expect(new Set(await many("/loki/api/v1/query", post))).toEqual(new Set([200]));
      expect(new Set(await many("/loki/api/v1/delete", { method: "POST" }))).toContain(502);
      expect(new Set(await many("/loki/api/v1/delete"))).toEqual(new Set([200]));
    },
  );
});
