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
  readonly once?: boolean;
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
  /** The number of requests that arrived where no answer comes. */
  let unanswered = 0;

  /** Starts a server that answers with a name, or one that takes requests and ends without an answer. */
  async function serve(name: string, ends = false): Promise<string> {
    const server = createServer((request, response) => {
      request.on("data", () => undefined);
      request.on("end", () => {
        if (!ends) return response.end(name);
        unanswered++;
        return request.socket.destroy();
      });
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
    let isMissing = false;
    child.once("error", () => {
      isMissing = true;
    });
    kill = () => void child.kill("SIGTERM");
    const answers = () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => isMissing,
      );
    await waitFor(answers);
  });

  afterAll(() => {
    kill();
    for (const server of servers) server.close().closeAllConnections();
  });

  needs("nginx")("passes on and refuses as they say", async () => {
    for (const { method, path } of asked) {
      const route = routeOf(path);
      // One compactor of three answers, and each request is sent to one.
      const ask = () => fetch(`${url}${path}?forget=a`, { method });
      let answer = await ask();
      for (let i = 0; i < 30 && route.once === true && answer.status === 502; i++)
        answer = await ask();
      const name = path === "/" ? "OK\n" : route.service;
      const wanted = isRefused(route, method) ? [403, refusal] : [200, name];
      expect([method, path, answer.status, await answer.text()]).toEqual([method, path, ...wanted]);
    }
  });

  needs("nginx")("leads browsers to the web interface", async () => {
    const headers = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
    const { status, headers: found } = await fetch(`${url}/`, { headers, redirect: "manual" });
    expect([status, found.get("location")]).toEqual([302, "/ui/"]);
  });

  needs("nginx")(
    "sends queries to another frontend when one ends, and each delete request once",
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
      for (const method of ["POST", "PUT", "DELETE"]) {
        unanswered = 0;
        const statuses = await many("/loki/api/v1/delete", { method });
        expect(statuses).toContain(502);
        const answered = statuses.filter((status) => status === 200).length;
        expect(answered + unanswered).toBeLessThanOrEqual(statuses.length);
      }
    },
  );
});
