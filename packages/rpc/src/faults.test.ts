import { connect } from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import { rapidResets } from "@skald/testkit";
import {
  callTestGrpc,
  connectTestGrpc,
  echo,
  startTestGrpc,
  stopTestGrpc,
} from "./testing/grpc.js";

const cuts: unknown[] = [];
const onCut = (reason: string, error?: unknown) =>
  void cuts.push(error instanceof Error ? [reason, error.message] : [reason]);

afterEach(async () => {
  cuts.length = 0;
  await stopTestGrpc();
});

describe("a server of calls", () => {
  it("survives a fault behind a call", async () => {
    let isFaulty = true;
    const onEnd = () => {
      if (isFaulty) throw new Error("a fault");
    };
    const { address } = await startTestGrpc({ Echo: echo }, { onEnd, onCut });
    await callTestGrpc(connectTestGrpc(address), "Echo", "x").catch(() => undefined);
    while (cuts.length === 0) await new Promise(setImmediate);
    expect(cuts).toEqual([["fault", "a fault"]]);
    isFaulty = false;
    expect(String(await callTestGrpc(connectTestGrpc(address), "Echo", "x"))).toBe("x");
  });

  it("cuts a client that resets its calls", async () => {
    const { address } = await startTestGrpc({ Echo: echo }, { onCut });
    const type = { "content-type": "application/grpc" };
    const sent = rapidResets(900, { ":method": "POST", ":path": "/skald.v1.Test/Echo", ...type });
    const port = Number(address.split(":")[1]);
    await Promise.all([1, 2, 3].map(() => sendUntilClosed(port, sent)));
    expect(cuts).toEqual(Array(3).fill(["resets"]));
    expect(String(await callTestGrpc(connectTestGrpc(address), "Echo", "x"))).toBe("x");
  });
});

function sendUntilClosed(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined).on("close", () => resolve());
    socket.resume().write(bytes);
  });
}
