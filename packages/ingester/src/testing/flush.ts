import { makeBatch } from "@skald/testkit";
import type { Seal } from "../flush/sealer.js";
import {
  everything,
  type Setup,
  type SetupOptions,
  sealHere,
  selectOnce,
  setUp,
} from "./ingester.js";

/** The time of a day, ns since the epoch. */
const base = 20_400n * 86_400_000_000_000n;
export const minuteMs = 60_000;

/** A running one that has replayed its log: before that the log is not cut. */
export async function started(options: SetupOptions = {}): Promise<Setup> {
  const setup = await setUp(options);
  await setup.ingester.start();
  await setup.ingester.replayed;
  return setup;
}

/** Pushes a line at an offset of a day, in ns. */
export function pushLine(setup: Setup, ns: number, line = `line ${ns}`, tenant = "t") {
  const rows = [{ ns: base + BigInt(ns), line }];
  return setup.ingester.push({ tenant, batch: makeBatch([{ labels: { app: "a" }, rows }]) });
}

/** Kinds of the sources of a tenant, sorted. */
export async function kinds({ ingester }: Setup, tenant = "t"): Promise<string[]> {
  const { sources } = await selectOnce(ingester, { ...everything, tenant });
  return sources.map(({ kind }) => kind).sort();
}

/** What an ingester's counter or gauge says, over all labels. */
export async function metric({ metrics }: Setup, name: string): Promise<number> {
  const { text } = await metrics.read();
  const values = text.split("\n").filter((line) => line.startsWith(`loki_ingester_${name}`));
  return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

/** A seal that waits until it is let go, or fails as often as told. */
export function heldSeal() {
  const waiting: (() => void)[] = [];
  const state = { held: true, failures: 0, calls: 0 };
  const seal: Seal = async (job) => {
    state.calls++;
    if (state.failures > 0) {
      state.failures--;
      throw new Error("no space for a segment");
    }
    if (state.held) await new Promise<void>((resolve) => waiting.push(resolve));
    return sealHere(job);
  };
  const letGo = () => {
    state.held = false;
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { seal, state, letGo };
}
