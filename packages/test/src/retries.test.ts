import { afterAll, expect, it } from "@jest/globals";
import { nowNs, queryNumber } from "./testing/client.js";
import { makeFolder, removeFolders, startServer } from "./testing/server.js";

afterAll(removeFolders);

it("a retry whose metadata comes in another order is the same row", async () => {
  const server = await startServer(makeFolder());
  const ns = nowNs();
  const push = async (metadata: string) => {
    const body = `{"streams":[{"stream":{"app":"a"},"values":[["${ns}","line",${metadata}]]}]}`;
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${server.url}/loki/api/v1/push`, { method: "POST", headers, body });
    expect(answer.status).toBe(204);
  };
  await push('{"trace":"1","user":"2","zone":"3"}');
  await push('{"zone":"3","trace":"1","user":"2"}');
  await push('{"zone":"4","trace":"1","user":"2"}');
  expect(await queryNumber(server.url, 'sum(count_over_time({app="a"}[1h]))')).toBe(2);
  await server.kill("SIGTERM");
});
