import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "@jest/globals";

const script = new URL("../../../scripts/cluster/gateway.mjs", import.meta.url).href;
const warnings: Error[] = [];
const note = (warning: Error) => warnings.push(warning);

afterEach(() => {
  process.off("warning", note);
});

it("asks many services for one request without a warning", async () => {
  process.on("warning", note);
  const service = createServer((_, response) => response.end("ready\n")).listen(0, "127.0.0.1");
  await once(service, "listening");
  const { port } = service.address() as AddressInfo;
  const { startGateway } = await import(script);
  const gateway = await startGateway(0, () => Array.from({ length: 20 }, () => port));
  const answer = await fetch(`http://127.0.0.1:${gateway.address().port}/ready`);
  expect([answer.status, await answer.text()]).toEqual([200, "ready\n"]);
  expect(warnings).toEqual([]);
  for (const server of [gateway, service]) server.close();
});
