import { describe, expect, it } from "@jest/globals";
import { RequestTurns, turnOf } from "./request-turns.js";

/** Longer than a request takes, so that a turn has room for two. */
const busyMs = 3;

function beBusy(): void {
  const end = performance.now() + busyMs;
  while (performance.now() < end);
}

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe("requests that begin", () => {
  it("begin at once while there is time in the turn", () => {
    const turns = new RequestTurns();
    const begun: number[] = [];
    for (let i = 0; i < 3; i++) turns.run({}, () => begun.push(i));
    expect(begun).toEqual([0, 1, 2]);
  });

  it("wait for the next turn of the event loop when a few milliseconds are gone", async () => {
    const turns = new RequestTurns();
    let begun = 0;
    for (let i = 0; i < 6; i++) {
      turns.run({}, () => {
        begun++;
        beBusy();
      });
    }
    const counts = [begun];
    while (begun < 6) {
      await nextTurn();
      counts.push(begun);
    }
    // At most two a turn, fewer on a busy machine.
    for (const [i, count] of counts.entries())
      expect(count - (counts[i - 1] ?? 0)).toBeLessThanOrEqual(2);
  });

  it("begin in turn with those of other connections, each connection's in their order", async () => {
    const turns = new RequestTurns();
    const greedy = {};
    const begun: string[] = [];
    for (let i = 0; i < 10; i++) {
      turns.run(greedy, () => {
        begun.push(`greedy ${i}`);
        beBusy();
      });
    }
    turns.run({}, () => begun.push("other"));
    while (begun.length < 11) await nextTurn();
    expect(begun.filter((name) => name !== "other")).toEqual(
      Array.from({ length: 10 }, (_, i) => `greedy ${i}`),
    );
    expect(begun.indexOf("other")).toBeLessThanOrEqual(3);
  });

  it("do not wait for a turn of each connection that sent many, where their own sent one", async () => {
    const turns = new RequestTurns();
    const begun: string[] = [];
    const begin = (name: string) => () => {
      begun.push(name);
      beBusy();
    };
    for (let i = 0; i < 20; i++) {
      const greedy = {};
      for (let n = 0; n < 2; n++) turns.run(greedy, begin("greedy"));
    }
    const before = begun.length;
    for (const name of ["one", "two"]) turns.run({}, begin(name));
    while (begun.length < 42) await nextTurn();
    expect(begun.indexOf("one")).toBeLessThanOrEqual(before + 4);
    expect(begun.indexOf("two")).toBeLessThanOrEqual(before + 6);
    // They do not keep those that sent many waiting either.
    const firstSix = begun.slice(before, before + 6);
    expect(firstSix.filter((name) => name === "greedy").length).toBeGreaterThan(1);
  });

  it("of one tenant wait for one of another, however many connections that has", async () => {
    const turns = new RequestTurns();
    const begun: string[] = [];
    const begin = (name: string) => () => {
      begun.push(name);
      beBusy();
    };
    for (let i = 0; i < 20; i++) turns.run({}, begin("many"), "a");
    const before = begun.length;
    const gone = {};
    turns.run(gone, begin("gone"), "c");
    turns.drop(gone);
    for (let i = 0; i < 2; i++) turns.run({}, begin("few"), "b");
    while (begun.length < 22) await nextTurn();
    expect(begun.slice(before, before + 5)).toEqual(["many", "few", "many", "few", "many"]);
  });

  it.each([
    ["of a tenant", { "x-scope-orgid": "a" }, "/loki/api/v1/push", "a"],
    ["without one, by their path", {}, "/loki/api/v1/push?x=/y", "/loki"],
    ["for health", {}, "/ready?verbose", "/ready"],
    ["of an empty tenant", { "x-scope-orgid": "" }, "/", "/"],
    ["without a path", {}, "*", ""],
  ])("%s have a turn of their own", (_name, headers, path, turn) => {
    expect(turnOf(headers, path)).toBe(turn);
  });

  it("are no more than some dozens in a turn, those that begin as they come a handful", async () => {
    const turns = new RequestTurns();
    let begun = 0;
    for (let i = 0; i < 200; i++) turns.run({}, () => begun++);
    expect(begun).toBe(8);
    while (begun < 200) {
      const before = begun;
      await nextTurn();
      expect(begun - before).toBeLessThanOrEqual(64);
    }
  });

  it("are forgotten with their connection", async () => {
    const turns = new RequestTurns();
    const [greedy, other] = [{}, {}];
    const begun: string[] = [];
    turns.run(greedy, () => {
      beBusy();
      beBusy();
    });
    for (let i = 0; i < 10; i++) turns.run(greedy, () => begun.push("greedy"));
    turns.run(other, () => begun.push("other"));
    turns.drop(greedy);
    turns.drop({});
    for (let i = 0; i < 3; i++) await nextTurn();
    expect(begun).toEqual(["other"]);
    turns.run(greedy, () => begun.push("again"));
    expect(begun).toEqual(["other", "again"]);
  });

  it("are refused when too many of one connection wait", async () => {
    const turns = new RequestTurns();
    const greedy = {};
    turns.run(greedy, () => {
      beBusy();
      beBusy();
    });
    const taken = Array.from({ length: 1100 }, () => turns.run(greedy, () => undefined));
    expect(taken.filter((isTaken) => isTaken)).toHaveLength(1000);
    expect(turns.run({}, () => undefined)).toBe(true);
  });
});
