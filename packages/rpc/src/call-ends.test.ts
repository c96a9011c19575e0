import { afterEach, describe, expect, it } from "@jest/globals";
import { SkaldError } from "@skald/model";
import type { IncomingCall } from "./server.js";
import {
  callTestGrpc,
  connectTestGrpc,
  echo,
  failureOf,
  forkPeer,
  type GrpcHandler,
  startTestGrpc,
  stopTestGrpc,
} from "./testing/grpc.js";

afterEach(stopTestGrpc);

describe("a call ends", () => {
  it("on both sides when it is cancelled", async () => {
    const { handler, entered } = waiting();
    const { address } = await startTestGrpc({ Wait: handler });
    const abort = new AbortController();
    const asked = failureOf(
      callTestGrpc(connectTestGrpc(address), "Wait", "", { signal: abort.signal }),
    );
    const incoming = await entered;
    const reason = new SkaldError("cancelled", "enough");
    abort.abort(reason);
    expect(await asked).toBe(reason);
    await aborted(incoming);
  });

  it("as unavailable when the other side takes longer than a time limit", async () => {
    const { handler, entered } = waiting();
    const { address } = await startTestGrpc({ Wait: handler });
    const connection = connectTestGrpc(address);
    const limit = new AbortController();
    const { signal } = limit;
    const asked = failureOf(callTestGrpc(connection, "Wait", "", { signal }));
    const incoming = await entered;
    // As AbortSignal.timeout does it.
    limit.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
    const told = { code: "unavailable", status: 503, message: `${address}: no answer in time` };
    expect(await asked).toMatchObject(told);
    await aborted(incoming);
    expect(await failureOf(callTestGrpc(connection, "Wait", "", { signal }))).toMatchObject(told);
  });

  it("on both sides at its deadline", async () => {
    const { handler, entered } = waiting();
    const { address } = await startTestGrpc({ Wait: handler, Echo: echo });
    const connection = connectTestGrpc(address);
    await callTestGrpc(connection, "Echo");
    const deadlineMs = Date.now() + 500;
    const error = await failureOf(callTestGrpc(connection, "Wait", "", { deadlineMs }));
    expect(error.code).toBe("deadline_exceeded");
    const incoming = await entered;
    expect(Math.abs(incoming.deadlineMs! - deadlineMs)).toBeLessThan(1000);
    await aborted(incoming);
  });

  it("on the server when the caller's process is gone", async () => {
    const { handler, entered } = waiting();
    const { address } = await startTestGrpc({ Wait: handler });
    const child = forkPeer("call", address);
    const incoming = await entered;
    child.kill("SIGKILL");
    await aborted(incoming);
  });

  it("as unavailable when the server's process is killed in the middle", async () => {
    const child = forkPeer("serve");
    const port = await new Promise((resolve) => child.once("message", resolve));
    const connection = connectTestGrpc(`127.0.0.1:${port}`);
    const asked = failureOf(callTestGrpc(connection, "Wait"));
    await new Promise((resolve) => child.once("message", resolve));
    child.kill("SIGKILL");
    const error = await asked;
    expect(error.code).toBe("unavailable");
    expect(error.message).toContain(`127.0.0.1:${port}`);
  });

  it("as unavailable when the server's process does not answer pings any more", async () => {
    const child = forkPeer("serve");
    const port = await new Promise((resolve) => child.once("message", resolve));
    const pings = { keepaliveMs: 50, keepaliveTimeoutMs: 500 };
    const connection = connectTestGrpc(`127.0.0.1:${port}`, pings);
    const asked = failureOf(callTestGrpc(connection, "Wait"));
    await new Promise((resolve) => child.once("message", resolve));
    child.kill("SIGSTOP");
    const error = await asked;
    expect(error.code).toBe("unavailable");
    expect(error.message).toContain(`127.0.0.1:${port}`);
    // A new connection gets no answer either, and does not wait for ever.
    const late = connectTestGrpc(`127.0.0.1:${port}`, { connectTimeoutMs: 100 });
    const refused = await failureOf(callTestGrpc(late, "Wait"));
    expect([refused.code, refused.message]).toEqual([
      "unavailable",
      `127.0.0.1:${port}: no connection within 100 ms`,
    ]);
    child.kill("SIGKILL");
  });

  it("on the server when the caller's process does not answer pings any more", async () => {
    const { handler, entered } = waiting();
    const pings = { keepaliveMs: 50, keepaliveTimeoutMs: 500 };
    const { address } = await startTestGrpc({ Wait: handler }, pings);
    const child = forkPeer("call", address);
    const incoming = await entered;
    child.kill("SIGSTOP");
    await aborted(incoming);
    child.kill("SIGKILL");
  });

  it("before a stop does, which takes no more", async () => {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    let enter = (): void => undefined;
    const entered = new Promise<void>((resolve) => {
      enter = resolve;
    });
    const { server, address } = await startTestGrpc({
      Wait: async () => {
        enter();
        await gate;
        return Buffer.from("done");
      },
    });
    const running = callTestGrpc(connectTestGrpc(address), "Wait");
    await entered;
    const stopped = server.stop();
    const late = await failureOf(callTestGrpc(connectTestGrpc(address), "Wait"));
    expect(late.code).toBe("unavailable");
    release();
    expect(String(await running)).toBe("done");
    await stopped;
  });
});

/** A handler that waits until its call ends, and what it saw. */
function waiting() {
  let enter = (_call: IncomingCall): void => undefined;
  const entered = new Promise<IncomingCall>((resolve) => {
    enter = resolve;
  });
  const handler: GrpcHandler = (_, incoming) => {
    enter(incoming);
    return new Promise((_, reject) =>
      incoming.signal.addEventListener("abort", () => reject(incoming.signal.reason)),
    );
  };
  return { handler, entered };
}

function aborted({ signal: given }: IncomingCall): Promise<void> {
  return new Promise((resolve) => {
    if (given.aborted) resolve();
    else given.addEventListener("abort", () => resolve());
  });
}
