import { appendFile, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { errorCodeOf, nsPerMs } from "@skald/model";
import { silentLogger } from "@skald/runtime/log";
import { MemoryStore } from "@skald/storage";
import { asked, hourMs, makeRequests, metricOf, signal, testClock } from "../testing/requests.js";
import { type DeletePass, DeletionLoop } from "./delete-pass.js";
import { isFinished, redactedQuery, statusOf } from "./delete-request.js";
import { LocalCopy } from "./request-store.js";

const all = { fromNs: 0n, toNs: 2n ** 62n };
const options = { signal };

async function ready(...args: Parameters<typeof makeRequests>) {
  const made = makeRequests(...args);
  await made.deletes.refresh(options);
  const ids = (tenant = "t") => made.deletes.list(tenant).map(({ request }) => request.id);
  const statuses = (tenant = "t") => made.deletes.list(tenant).map(statusOf);
  const active = (range = all, tenant = "t") => made.deletes.active({ tenant, ...range });
  return { ...made, ids, statuses, active };
}

async function keysOf(store: MemoryStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list("index/", options)) keys.push(key);
  return keys;
}

describe("DeleteRequests", () => {
  it("hides rows from the first to the last ms, until they are stored no more", async () => {
    const { deletes, active, statuses } = await ready();
    const id = await deletes.create("t", asked("{a=`b`}", 1000, 3000), options);
    expect(id).toMatch(/^[0-9a-f]{8}$/);
    expect(await active()).toMatchObject([{ fromNs: 1000n * nsPerMs, toNs: 3000n * nsPerMs + 1n }]);
    expect(await active({ fromNs: 3000n * nsPerMs, toNs: 2n ** 62n })).toHaveLength(1);
    expect(await active({ fromNs: 3000n * nsPerMs + 1n, toNs: 2n ** 62n })).toEqual([]);
    expect(await active({ fromNs: 0n, toNs: 1000n * nsPerMs })).toEqual([]);
    expect(await active(all, "u")).toEqual([]);
    expect([deletes.hidesRows("t"), deletes.hidesRows("u")]).toEqual([true, false]);
    const [known] = deletes.list("t");
    if (known === undefined) throw new Error("no request");
    await deletes.note(known.request, [0], options);
    expect(await active()).toEqual([]);
    expect([statuses(), deletes.hidesRows("t")]).toEqual([["processed"], false]);
  });

  it("goes on with the parts that are left", async () => {
    const { deletes, active, statuses } = await ready();
    await deletes.create("t", asked("{a=`b`} |= `c`", 0, 1000, 2000, 3000), options);
    const [known] = deletes.list("t");
    if (known === undefined) throw new Error("no request");
    await deletes.note(known.request, [1], options);
    expect(statuses()).toEqual(["33% Complete"]);
    expect(await active()).toMatchObject([
      { fromNs: 0n, toNs: 1000n * nsPerMs },
      { fromNs: 2000n * nsPerMs, toNs: 3000n * nsPerMs + 1n },
    ]);
  });

  it("is read again by another process, and by one that was there before", async () => {
    const store = new MemoryStore();
    const first = await ready(store);
    const second = await ready(store);
    await first.deletes.create("t", asked("{a=`b`}", 1000, 3000), options);
    await second.deletes.create("t", asked("{a=`c`}", 1000, 3000), options);
    await second.deletes.create("../x/y", asked("{a=`c`}", 1000, 3000), options);
    for (const one of [first, second, await ready(store)]) {
      await one.deletes.refresh(options);
      expect(one.ids()).toHaveLength(2);
      expect(one.ids("../x/y")).toHaveLength(1);
      expect(one.ids()).toEqual(first.ids());
    }
    await second.deletes.cancel("t", first.ids()[0] as string, false, options);
    await first.deletes.refresh(options);
    expect(first.ids()).toEqual(second.ids());
    expect(first.ids()).toHaveLength(1);
  });

  it("leaves out what is damaged, and says so", async () => {
    const store = new MemoryStore();
    const { deletes } = await ready(store);
    await deletes.create("t", asked("{a=`b`}", 1, 2), options);
    const [key = ""] = await keysOf(store);
    const text = Buffer.from(await store.get(key, options)).toString();
    await store.put(key, Buffer.from(text.replace("{a=`b`}", "{a=`x`}")), options);
    await store.put(key.replace(/.{8}\.json/, "22222222.json"), Buffer.from("{"), options);
    const other = await ready(store);
    expect(other.ids()).toEqual([]);
    expect(other.damaged).toHaveLength(2);
  });

  it.each([".json", ".progress.json"])(
    "answers nothing for a tenant of which a newer version wrote a file: *%s",
    async (end) => {
      const store = new MemoryStore();
      const clock = testClock();
      const first = await ready(store, clock);
      for (const tenant of ["t", "u"]) {
        await first.deletes.create(tenant, asked("{a=`b`} |= `c`", 0, 1000, 2000), options);
        const [known] = first.deletes.list(tenant);
        if (known !== undefined) await first.deletes.note(known.request, [0], options);
      }
      const key = (await keysOf(store)).find(
        (one) => one.includes("tenant=t/") && one.endsWith(end),
      );
      const good = Buffer.from(await store.get(key as string, options)).toString();
      const newer = good.replace('"version":1', '"version":2');
      await store.put(key as string, Buffer.from(newer), options);
      clock.ms += hourMs;
      const { deletes, active, ids, damaged } = await ready(store, clock);
      await expect(active()).rejects.toMatchObject({ code: "newer_version" });
      expect(() => ids()).toThrow(`${key} has format version 2`);
      const cancelled = deletes.cancel("t", "x", false, options);
      await expect(cancelled).rejects.toMatchObject({ code: "newer_version" });
      expect([deletes.hidesRows("t"), deletes.generation("t")]).toEqual([true, "newer"]);
      expect([...deletes.due().keys()]).toEqual(["u"]);
      expect(await active(all, "u")).toHaveLength(1);
      expect(damaged).toEqual([]);
      expect(Buffer.from(await store.get(key as string, options)).toString()).toBe(newer);
      // The newer version, or somebody else, put it right.
      await store.put(key as string, Buffer.from(`${good} `), options);
      await deletes.refresh(options);
      expect(await active()).toHaveLength(1);
    },
  );

  it.each(["a process that knows it", "a copy on the disk"])(
    "are written again where they are damaged, by %s",
    async (who) => {
      const directory = await mkdtemp(join(tmpdir(), "skald-copy-"));
      try {
        const copy = () => new LocalCopy(join(directory, "requests.json"));
        const store = new MemoryStore();
        const before = await ready(store, undefined, {}, copy());
        await before.deletes.create("t", asked("{a=`b`}", 1, 2), options);
        const [key = ""] = await keysOf(store);
        const text = async () => Buffer.from(await store.get(key, options)).toString();
        const good = await text();
        await store.put(key, Buffer.from(good.slice(0, 50)), options);
        const after =
          who === "a copy on the disk" ? makeRequests(store, undefined, {}, copy()) : before;
        await after.deletes.refresh(options);
        expect(await after.deletes.active({ tenant: "t", ...all })).toHaveLength(1);
        expect(await text()).toBe(good);
        // What a later program wrote is not for this one to change.
        const newer = good.replace('"version":1', '"version":2');
        await store.put(key, Buffer.from(newer), options);
        await after.deletes.refresh(options);
        expect(await text()).toBe(newer);
      } finally {
        await rm(directory, { recursive: true });
      }
    },
  );

  it("reads files of version 1", async () => {
    const store = new MemoryStore();
    const file =
      '{"version":1,"crc32":1850201611,"body":{"id":"a1b2c3d4","tenant":"t","query":"{app=\\"x\\"} |= \\"y\\"","boundsMs":[1799990000000,1799992800000,1799999000000],"createdMs":1800000000000}}\n';
    const key = "index/delete_requests/tenant=t/1800000000000-a1b2c3d4.json";
    await store.put(key, Buffer.from(file), options);
    const { active, ids } = await ready(store);
    expect([ids(), (await active()).length]).toEqual([["a1b2c3d4"], 1]);
  });

  it("hides what a copy on the disk says while the store does not answer", async () => {
    const directory = await mkdtemp(join(tmpdir(), "skald-copy-"));
    try {
      const path = join(directory, "compactor", "requests.json");
      const before = await ready(undefined, undefined, {}, new LocalCopy(path));
      await before.deletes.create("t", asked("{a=`b`}", 1, 2), options);
      const down = {
        list: () => {
          throw new Error("down");
        },
      } as unknown as MemoryStore;
      const { deletes } = makeRequests(down, undefined, {}, new LocalCopy(path));
      const loop = new DeletionLoop({
        ...{ deletes, log: silentLogger(), intervalMs: 1 },
        pass: {} as DeletePass,
      });
      await loop.start(signal);
      expect(await deletes.active({ tenant: "t", ...all })).toHaveLength(1);
      const none = makeRequests(down, undefined, {}, new LocalCopy(`${path}x`)).deletes;
      await none.recall();
      expect(none.isKnown).toBe(false);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it("answers no query before it knows the requests", async () => {
    const { deletes } = makeRequests();
    expect(deletes.hidesRows("t")).toBe(true);
    const error = await deletes.active({ tenant: "t", ...all }).catch((failure) => failure);
    expect(errorCodeOf(error)).toBe("unavailable");
  });

  it("keeps later requests in a copy on the disk, but what a crash cut off", async () => {
    const directory = await mkdtemp(join(tmpdir(), "skald-copy-"));
    try {
      const path = join(directory, "requests.json");
      const { deletes, ids } = await ready(undefined, undefined, {}, new LocalCopy(path));
      const [first = ""] = [await deletes.create("t", asked("{a=`b`}", 1, 2), options)];
      const sizeOf = async () => (await stat(path)).size;
      const before = await sizeOf();
      await deletes.create("u", asked("{a=`b`}", 1, 2), options);
      const each = (await sizeOf()) - before;
      for (let i = 0; i < 50; i++) await deletes.create("t", asked("{a=`b`}", 1, 2), options);
      // Each request adds its own bytes, however many there are; checksums differ in length.
      expect((await sizeOf()) - before).toBeLessThan(51 * (each + 10));
      await deletes.cancel("t", first, false, options);
      const pending = async () =>
        ((await new LocalCopy(path).read()) ?? []).filter((one) => !isFinished(one));
      expect((await pending()).map(({ request }) => request.id).sort()).toEqual(
        [...ids(), ...ids("u")].sort(),
      );
      await appendFile(path, '{"version":1,"crc32":1,"bo');
      expect(await pending()).toHaveLength(51);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it("of a tenant do not wait for those of another", async () => {
    class Slow extends MemoryStore {
      readonly waits: (() => void)[] = [];
      override async put(...args: Parameters<MemoryStore["put"]>) {
        if (args[0].includes("tenant=t/"))
          await new Promise<void>((resolve) => this.waits.push(resolve));
        return super.put(...args);
      }
    }
    const store = new Slow();
    const { deletes, ids } = await ready(store);
    const slow = deletes.create("t", asked("{a=`b`}", 1, 2), options);
    await deletes.create("u", asked("{a=`b`}", 1, 2), options);
    await deletes.refresh(options);
    await deletes.refresh(options, "u");
    expect([ids(), ids("u").length]).toEqual([[], 1]);
    store.waits.shift()?.();
    await slow;
    expect(ids()).toHaveLength(1);
  });

  it("that are made while all are read stay known", async () => {
    class Slow extends MemoryStore {
      wait: Promise<void> | undefined;
      override async *list(...args: Parameters<MemoryStore["list"]>) {
        const found = [];
        for await (const one of super.list(...args)) found.push(one);
        await this.wait;
        yield* found;
      }
    }
    const store = new Slow();
    const { deletes, ids } = await ready(store);
    let go: () => void = () => undefined;
    store.wait = new Promise((resolve) => (go = resolve));
    const reading = deletes.refresh(options);
    const [first, second] = [
      await deletes.create("t", asked("{a=`b`}", 1, 2), options),
      await deletes.create("t", asked("{a=`b`}", 1, 2), options),
    ];
    await deletes.cancel("t", first as string, false, options);
    go();
    await reading;
    expect(ids()).toEqual([second]);
  });

  it("are parsed once, however often they are read", async () => {
    const store = new MemoryStore();
    const { deletes } = await ready(store);
    await deletes.create("t", asked("{a=`b`}", 1, 2), options);
    const [before] = deletes.list("t");
    await deletes.refresh(options);
    await deletes.refresh(options, "t");
    expect(deletes.list("t")[0]).toBe(before);
  });

  it("are bounded in number for each tenant, until they are done or cancelled", async () => {
    const { deletes } = await ready(undefined, undefined, {}, undefined, 2);
    const create = (tenant = "t") => deletes.create(tenant, asked("{a=`b`}", 1, 2), options);
    const first = await create();
    await create();
    await expect(create()).rejects.toMatchObject({
      status: 429,
      message: expect.stringMatching(
        /limit: 2, pending: 2.*limits_config\.max_pending_delete_requests/,
      ),
    });
    await create("u");
    await deletes.cancel("t", first, false, options);
    await create();
    await expect(create()).rejects.toMatchObject({ status: 429 });
    const [known] = deletes.list("t");
    if (known !== undefined) await deletes.note(known.request, [0], options);
    await create();
  });

  it("hides nothing for a tenant that may not delete", async () => {
    const { active, deletes } = await ready(undefined, undefined, {
      t: "disabled",
      u: "filter-only",
    });
    await deletes.create("t", asked("{a=`b`}", 1, 2), options);
    await deletes.create("u", asked("{a=`b`}", 1, 2), options);
    expect([await active(), await active(all, "u")]).toMatchObject([[], [{}]]);
  });

  it("carries out what nobody can cancel any more, where it may", async () => {
    const clock = testClock();
    const { deletes } = await ready(undefined, clock, { u: "filter-only" });
    for (const tenant of ["t", "u"]) await deletes.create(tenant, asked("{a=`b`}", 1, 2), options);
    expect([...deletes.due().keys()]).toEqual([]);
    clock.ms += hourMs;
    expect([...deletes.due().keys()]).toEqual(["t"]);
  });

  it("counts requests by tenant", async () => {
    const clock = testClock();
    const { deletes, metrics } = await ready(undefined, clock);
    await deletes.create("t", asked("{a=`b`}", 1, 2), options);
    clock.ms += 5000;
    const counts = () =>
      Promise.all(
        [
          'compactor_delete_requests_received_total{user="t"}',
          'compactor_delete_requests_processed_total{user="t"}',
          'compactor_deleted_lines{user="t"}',
          "compactor_pending_delete_requests_count",
          "compactor_oldest_pending_delete_request_age_seconds",
        ].map((name) => metricOf(metrics, name)),
      );
    expect(await counts()).toEqual([1, 0, 0, 1, 5]);
    const [known] = deletes.list("t");
    if (known !== undefined) await deletes.note(known.request, [0], options);
    deletes.countRows("t", 7);
    expect(await counts()).toEqual([1, 1, 7, 0, 0]);
  });
});

describe("redaction", () => {
  const secret = "{a=`b`} |= `secret of somebody`";
  const owns = () => true;
  const textOf = async (store: MemoryStore) => {
    const texts: string[] = [];
    for (const key of await keysOf(store))
      texts.push(Buffer.from(await store.get(key, options)).toString());
    return texts.join("");
  };

  it("takes the text of a finished request out of the store and the copy, and hides nothing with it", async () => {
    const store = new MemoryStore();
    const clock = testClock();
    const folder = await mkdtemp(join(tmpdir(), "skald-redact-"));
    const path = join(folder, "copy.json");
    const { deletes, active, statuses, ids } = await ready(
      ...([store, clock, undefined, new LocalCopy(path)] as const),
    );
    await deletes.create("t", asked(secret, 0, 1000, 2000), options);
    clock.ms += 1;
    await deletes.create("t", asked("{a=`open`}", 0, 1000), options);
    const [first] = deletes.list("t");
    if (first === undefined) throw new Error("no request");
    clock.ms += 100 * hourMs;
    await deletes.redact(options, owns);
    expect(await textOf(store)).toContain("secret");
    await deletes.note(first.request, [0, 1], options);
    clock.ms += 2 * hourMs - 1;
    await deletes.redact(options, owns);
    expect([await textOf(store), await readFile(path, "utf8")].join()).toContain("secret");
    clock.ms += 1;
    await deletes.redact(options, () => false);
    expect(await textOf(store)).toContain("secret");
    const before = ids();
    await deletes.redact(options, owns);
    expect([await textOf(store), await readFile(path, "utf8")].join()).not.toContain("secret");
    // Every process reads the same list with another text.
    const other = await ready(store, clock);
    for (const one of [{ deletes, active, statuses, ids }, other]) {
      expect([one.ids(), one.statuses()]).toEqual([before, ["processed", "received"]]);
      expect(await one.active()).toHaveLength(1);
      expect(one.deletes.list("t").map(({ request }) => request.query)).toEqual([
        redactedQuery,
        "{a=`open`}",
      ]);
    }
    // It stays finished without its progress, because it could not be carried out any more.
    for (const key of await keysOf(store))
      if (key.endsWith(".progress.json")) await store.delete(key, options);
    const again = await ready(store, clock);
    expect([again.statuses(), [...again.deletes.due().values()].flat().length]).toEqual([
      ["processed", "received"],
      1,
    ]);
    await rm(folder, { recursive: true });
  });
});

describe("cancelling", () => {
  const fine = "cancelled";
  it.each<[string, { done?: number[]; ageMs?: number; force?: boolean; id?: string }, string]>([
    ["a new one", {}, fine],
    ["one that is not there", { id: "x" }, "could not find delete request with given id"],
    [
      "one that is done",
      { done: [0, 1] },
      "which is in process or already processed is not allowed",
    ],
    [
      "one that is done, by force",
      { done: [0, 1], force: true },
      "already processed is not allowed",
    ],
    ["one half done", { done: [1] }, "Unable to cancel partially completed delete request"],
    ["one half done, by force", { done: [1], force: true }, fine],
    ["an old one", { ageMs: hourMs + 1 }, "past the deadline of 1h0m0s since its creation"],
    ["an old one, by force", { ageMs: hourMs + 1, force: true }, fine],
  ])("%s", async (_, { done = [], ageMs = 0, force = false, id }, want) => {
    const store = new MemoryStore();
    const clock = testClock();
    const { deletes, statuses, active } = await ready(store, clock);
    const made = await deletes.create("t", asked("{a=`b`} |= `c`", 0, 1000, 2000), options);
    const [known] = deletes.list("t");
    if (known === undefined) throw new Error("no request");
    await deletes.note(known.request, done, options);
    clock.ms += ageMs;
    const outcome = await deletes.cancel("t", id ?? made, force, options).then(
      () => fine,
      (error: Error) => error.message,
    );
    expect(outcome).toContain(want);
    if (want !== fine) return;
    const left = done.length > 0 ? ["processed"] : [];
    expect([statuses(), await active()]).toEqual([left, []]);
    expect((await ready(store, clock)).statuses()).toEqual(left);
  });
});
