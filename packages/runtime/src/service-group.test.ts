import { describe, expect, it } from "@jest/globals";
import { describeNotRunning, formatServices, Service, ServiceGroup } from "./service.js";

function recorder() {
  const calls: string[] = [];
  const make = (name: string, start?: () => Promise<void>) =>
    new Service({
      name,
      start: async () => {
        await start?.();
        calls.push(`+${name}`);
      },
      stop: () => void calls.push(`-${name}`),
    });
  return { calls, make };
}

describe("ServiceGroup", () => {
  it("starts what is needed first and stops it last", async () => {
    const { calls, make } = recorder();
    const group = new ServiceGroup([
      { service: make("http"), needs: ["ingester", "querier"] },
      { service: make("querier"), needs: ["store"] },
      { service: make("ingester"), needs: ["store"] },
      { service: make("store"), needs: [] },
    ]);
    expect(group.services[0]?.name).toBe("store");
    await group.start();
    expect(calls[0]).toBe("+store");
    expect(calls[3]).toBe("+http");
    await group.stop();
    expect(calls[4]).toBe("-http");
    expect(calls[7]).toBe("-store");
    expect(group.services.every((service) => service.state === "Terminated")).toBe(true);
  });

  it("stops the others and rejects when one cannot start", async () => {
    const { calls, make } = recorder();
    const group = new ServiceGroup([
      { service: make("store"), needs: [] },
      { service: make("ingester", () => Promise.reject(new Error("no disk"))), needs: ["store"] },
      { service: make("http"), needs: ["ingester"] },
    ]);
    await expect(group.start()).rejects.toThrow("no disk");
    expect(calls).toEqual(["+store", "-store"]);
    expect(group.services.map((service) => service.state)).toEqual([
      "Terminated",
      "Failed",
      "Terminated",
    ]);
  });

  it("tells the first failure", async () => {
    const broken = new Service({ name: "b", run: () => Promise.reject(new Error("lost")) });
    const group = new ServiceGroup([
      { service: new Service({ name: "a" }), needs: [] },
      { service: broken, needs: [] },
    ]);
    const failure = group.firstFailure();
    await group.start();
    expect(await failure).toBe(broken);
    await group.stop();
  });

  const bad: [string, [string, string[]][], string][] = [
    ["a need that is not there", [["a", ["b"]]], "service a needs b, which is not there"],
    [
      "a circle",
      [
        ["a", ["b"]],
        ["b", ["a"]],
      ],
      "services need each other: a -> b -> a",
    ],
    [
      "one name twice",
      [
        ["a", []],
        ["a", []],
      ],
      "two services have the same name",
    ],
  ];
  it.each(bad)("refuses %s", (_, nodes, message) => {
    const build = () =>
      new ServiceGroup(nodes.map(([name, needs]) => ({ service: new Service({ name }), needs })));
    expect(build).toThrow(message);
  });
});

describe("texts", () => {
  const services = [
    { name: "distributor", state: "Running" },
    { name: "ingester", state: "Starting" },
    { name: "querier", state: "Running" },
  ] as const;

  it("lists services", () => {
    expect(formatServices(services)).toBe(
      "distributor => Running\ningester => Starting\nquerier => Running\n",
    );
  });

  it("counts states while one is not Running", () => {
    expect(describeNotRunning(services)).toBe(
      "Some services are not Running:\nRunning: 2\nStarting: 1\n",
    );
    expect(describeNotRunning(services.filter((s) => s.state === "Running"))).toBeUndefined();
  });
});
