import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { needs } from "@skald/testkit/needs";
import {
  asFields,
  asList,
  at,
  type Fields,
  isFields,
  parseYaml,
  readText,
  root,
  runTool,
  type Value,
} from "../testing/deploy/repository.js";

const file = parseYaml(readText("docker-compose.yml"));
const services = Object.entries(asFields(file.services)).map(
  ([name, service]): [string, Fields] => [name, asFields(service)],
);

/** The keys of a service that the file uses, with the form of their values: https://github.com/compose-spec/compose-spec */
const keys: Readonly<Record<string, (value: Value) => boolean>> = {
  build: (value) => typeof value === "string",
  pull_policy: (value) => value === "never",
  image: (value) => typeof value === "string" && /:[^:/]+$/.test(value),
  profiles: isTexts,
  command: isTexts,
  entrypoint: isTexts,
  environment: isFields,
  ports: isTexts,
  volumes: isTexts,
  networks: (value) => isTexts(value) || isFields(value),
  depends_on: (value) => isTexts(value) || isFields(value),
  healthcheck: isFields,
  restart: (value) => ["no", "always", "on-failure", "unless-stopped"].includes(String(value)),
  scale: (value) => Number.isInteger(value),
  hostname: (value) => /^[a-z0-9-]+$/.test(String(value)),
  read_only: (value) => typeof value === "boolean",
  cap_drop: isTexts,
  security_opt: isTexts,
  tmpfs: isTexts,
  stop_grace_period: (value) => /^\d+s$/.test(String(value)),
};

function isIngester(name: string): boolean {
  return /^ingester-\d$/.test(name);
}

function isTexts(value: Value): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

describe.each(services)("service %s", (_, service) => {
  it("has keys that there are, with values of their form", () => {
    const wrong = Object.entries(service).filter(([key, value]) => keys[key]?.(value) !== true);
    expect(wrong).toEqual([]);
  });

  it("mounts files that are there, and volumes that are declared", () => {
    const declared = Object.keys(asFields(file.volumes));
    for (const volume of asList(service.volumes)) {
      const [from = ""] = String(volume).split(":");
      const isThere = from.startsWith("./")
        ? existsSync(join(root, from))
        : declared.includes(from);
      expect([volume, isThere]).toEqual([volume, true]);
    }
  });

  it("waits for services that start with it", () => {
    const { depends_on: names } = service;
    for (const name of Array.isArray(names) ? names : Object.keys(asFields(names ?? {}))) {
      const other = services.find(([one]) => one === name)?.[1];
      expect(asList(other?.profiles)).toEqual(asList(service.profiles));
    }
  });
});

describe("docker-compose.yml", () => {
  it("starts one process by default", () => {
    expect(readText(".env")).toMatch(/^COMPOSE_PROFILES=single$/m);
    const single = services.filter(([, { profiles }]) => asList(profiles).includes("single"));
    expect(single.map(([name]) => name)).toEqual(["skald"]);
    expect(services.filter(([, { profiles }]) => profiles === undefined)).toEqual([]);
  });

  it("has every service in the profile cluster, as often as it should be", () => {
    const count = ([name, service]: [string, Fields]) => `${name} ${service.scale ?? 1}`;
    const cluster = services.filter(([, { profiles }]) => asList(profiles).includes("cluster"));
    expect(cluster.map(count).sort()).toEqual([
      "compactor 2",
      "distributor 2",
      "gateway 1",
      "index-gateway 2",
      "ingester-1 1",
      "ingester-2 1",
      "ingester-3 1",
      "ingester-4 0",
      "pattern-ingester 2",
      "querier 2",
      "query-frontend 2",
      "query-scheduler 2",
      "redis 1",
      "ruler 2",
      "s3 1",
      "s3-setup 1",
    ]);
  });

  it("has two of every service of ours at least", () => {
    const ours = services.filter(
      ([name, { image }]) => image === "skald:dev" && name !== "skald" && !isIngester(name),
    );
    expect(ours.filter(([, { scale }]) => !(Number(scale) >= 2)).map(([name]) => name)).toEqual([]);
  });

  it("gives each ingester a name and a disk that outlive its container", () => {
    const ingesters = services.filter(([name]) => isIngester(name));
    expect(ingesters.map(([name, { hostname }]) => hostname === name)).toEqual(
      ingesters.map(() => true),
    );
    for (const [name, { volumes, networks, command }] of ingesters) {
      expect(asList(volumes)).toContain(`${name}:/var/loki`);
      // The gateway and the others of the cluster find all of them by one name.
      expect(at(networks, "inside", "aliases")).toEqual(["ingester"]);
      expect(asList(command)).toContain("-target=ingester");
    }
    expect(ingesters.filter(([, { scale }]) => scale !== 0)).toHaveLength(3);
  });

  it("builds its image once in a profile, and pulls it never", () => {
    const ours = services.filter(([, { image }]) => image === "skald:dev");
    expect(ours.every(([, one]) => one.pull_policy === "never")).toBe(true);
    const builders = ours.filter(([, { build }]) => build !== undefined);
    expect(builders.map(([name, { profiles }]) => [name, asList(profiles)])).toEqual([
      ["skald", ["single"]],
      ["distributor", ["cluster"]],
    ]);
  });

  it("lets what may be scaled have no port and no folder of the host", () => {
    for (const [name, service] of services.filter(([, one]) => Number(one.scale) > 1)) {
      expect([name, service.ports]).toEqual([name, undefined]);
      expect(asList(service.volumes).every((one) => String(one).endsWith(":ro"))).toBe(true);
    }
  });

  it.each([
    "deploy/docker/nginx.conf",
    "deploy/docker/cluster-config.yaml",
    "deploy/docker/prometheus.yaml",
  ])("%s names services that there are", (path) => {
    const hosts = [...readText(path).matchAll(/(?:https?:\/\/|: )([a-z0-9-]+):\d{4}\b/g)].map(
      ([, host]) => host ?? "",
    );
    const targets = asList(
      at(parseYamlOf(path), "scrape_configs", 0, "dns_sd_configs", 0, "names"),
    ).map(String);
    const names = services.flatMap(([name, { networks }]) => [
      name,
      ...asList(at(networks ?? null, "inside", "aliases")),
    ]);
    expect([...hosts, ...targets].filter((host) => !names.includes(host))).toEqual([]);
    expect(hosts.length + targets.length).toBeGreaterThan(4);
  });

  it("has the keys of its bucket in both places", () => {
    const { accessKey, secretKey } = asFields(
      at(
        JSON.parse(readText("deploy/docker/seaweedfs/s3.json")),
        "identities",
        0,
        "credentials",
        0,
      ),
    );
    const [, ingester] = services.find(([name]) => name === "ingester-1") ?? [];
    expect(at(ingester, "environment", "S3_ACCESS_KEY")).toBe(`\${S3_ACCESS_KEY:-${accessKey}}`);
    expect(at(ingester, "environment", "S3_SECRET_KEY")).toBe(`\${S3_SECRET_KEY:-${secretKey}}`);
  });

  for (const profile of ["single", "cluster", "grafana"])
    needs("docker-compose")(`is what docker-compose takes, profile ${profile}`, () => {
      const done = runTool("docker-compose", ["--profile", profile, "config", "-q"]);
      expect(done).toEqual({ status: 0, output: "" });
    });
});

function parseYamlOf(path: string): Fields {
  return path.endsWith(".yaml") ? parseYaml(readText(path)) : {};
}
