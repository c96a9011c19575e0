import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { until } from "@skald/testkit";
import { startProcess } from "../../testing/start-process.js";

it("a process that starts while its store is not mounted is not ready until it is", async () => {
  const folder = mkdtempSync(join(tmpdir(), "skald-mount-"));
  const flags = [`-common.path-prefix=${folder}`];
  const chunks = join(folder, "chunks");
  const first = await startProcess(flags);
  expect((await fetch(`${first.url}/ready`)).status).toBe(200);
  await first.stop();
  renameSync(chunks, `${chunks}.away`);
  const second = await startProcess(flags);
  const answer = await fetch(`${second.url}/ready`);
  expect(answer.status).toBe(503);
  expect(await answer.text()).toMatch(/the object store in .* is not there; mount it, or delete/);
  rmSync(chunks, { recursive: true, force: true });
  renameSync(`${chunks}.away`, chunks);
  await until(async () => (await fetch(`${second.url}/ready`)).status === 200);
  await second.stop();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);
