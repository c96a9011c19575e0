import { afterEach, describe, expect, it } from "@jest/globals";
import type { SkaldError } from "@skald/model";
import { StretchRecorder } from "@skald/runtime";
import { until } from "@skald/testkit";
import {
  callTestGrpc,
  connectTestGrpc,
  echo,
  failureOf,
  startTestGrpc,
  stopTestGrpc,
  testMethod,
} from "./testing/grpc.js";

const MiB = 1024 * 1024;
const { signal } = new AbortController();

afterEach(stopTestGrpc);

/** A server whose method `Echo` answers with one message. */
function startUnary() {
  return startTestGrpc({ Echo: echo }, {}, {}, ["Echo"]);
}

describe("a call", () => {
  it.each([0, 1, 127, 128, 256 * 1024, 256 * 1024 + 1, 5 * MiB + 17])(
    "carries %i bytes there and back",
    async (size) => {
      const { address } = await startTestGrpc({ Echo: echo });
      const bytes = Buffer.alloc(size, "abcdefg");
      for (const isStream of [true, false]) {
        const method = testMethod("Echo", isStream);
        const { address: at } = isStream ? { address } : await startUnary();
        const answer = await connectTestGrpc(at).call(method, bytes, { signal });
        expect(bytes.equals(answer)).toBe(true);
      }
    },
  );

  it("is named as the work that blocks the thread", async () => {
    const { address } = await startTestGrpc({
      Echo: async (bytes) => {
        const before = process.cpuUsage();
        while (process.cpuUsage(before).user < 200_000);
        return bytes;
      },
    });
    const seen: string[] = [];
    const recorder = new StretchRecorder(({ route }) => seen.push(route));
    recorder.start();
    try {
      await callTestGrpc(connectTestGrpc(address), "Echo");
      await until(() => seen.includes(testMethod("Echo", true).path));
    } finally {
      recorder.stop();
    }
  });

  it("shares its connection with others", async () => {
    const { address } = await startTestGrpc({ Echo: echo });
    const connection = connectTestGrpc(address);
    const texts = Array.from({ length: 300 }, (_, i) => String(i));
    const answers = await Promise.all(texts.map((text) => callTestGrpc(connection, "Echo", text)));
    expect(answers.map(String)).toEqual(texts);
  });

  it("of a method that the other side lacks says so", async () => {
    const { address } = await startTestGrpc({ Echo: echo });
    const error = await failureOf(callTestGrpc(connectTestGrpc(address), "New"));
    expect(error.code).toBe("unavailable");
    expect(error.message).toContain(address);
  });

  it("without anybody at the other end is unavailable", async () => {
    const { server, address } = await startTestGrpc({ Echo: echo });
    await server.stop();
    const error = await failureOf(callTestGrpc(connectTestGrpc(address), "Echo"));
    expect(error.code).toBe("unavailable");
    expect(error.message).toContain(address);
  });

  it("works again when the other end comes back", async () => {
    const first = await startTestGrpc({ Echo: echo });
    const connection = connectTestGrpc(first.address);
    await callTestGrpc(connection, "Echo");
    await first.server.kill();
    const port = Number(first.address.split(":")[1]);
    await startTestGrpc({ Echo: echo }, { port });
    for (;;) {
      const answer = await callTestGrpc(connection, "Echo", "x").catch(
        (error: SkaldError) => error.code,
      );
      if (answer !== "unavailable") {
        expect(String(answer)).toBe("x");
        break;
      }
    }
  });
});

describe("a message over its limit is refused", () => {
  const large = Buffer.alloc(2000);
  it.each([
    ["by the server", { maxReceiveBytes: 1000 }, {}, "grpc_server_max_recv_msg_size"],
    ["before it is sent", {}, { maxSendBytes: 1000 }, "max_send_msg_size"],
    ["when it is an answer", {}, { maxReceiveBytes: 1000 }, "max_recv_msg_size"],
  ])("%s", async (_name, ofServer, ofClient, key) => {
    const { address } = await startTestGrpc({ Echo: echo }, ofServer);
    const connection = connectTestGrpc(address, ofClient);
    const error = await failureOf(connection.call(testMethod("Echo"), large, { signal }));
    expect(error.code).toBe("too_large");
    expect(error.message).toMatch(new RegExp(`; raise .*${key}`));
    expect(error.message).toContain("2000 bytes");
    expect(String(await callTestGrpc(connection, "Echo", "x"))).toBe("x");
  });

  it("by the server while much of it is still to come", async () => {
    const { address } = await startTestGrpc({ Echo: echo }, { maxReceiveBytes: MiB });
    const connection = connectTestGrpc(address);
    const huge = Buffer.alloc(32 * MiB);
    const error = await failureOf(connection.call(testMethod("Echo"), huge, { signal }));
    expect(error.code).toBe("too_large");
    expect(String(await callTestGrpc(connection, "Echo", "x"))).toBe("x");
  });

  it("and an answer in small parts arrives", async () => {
    const { address } = await startTestGrpc({ Echo: echo }, { maxSendBytes: 1000 });
    const bytes = Buffer.alloc(100_001, "xyz");
    const answer = await connectTestGrpc(address).call(testMethod("Echo"), bytes, { signal });
    expect(bytes.equals(answer)).toBe(true);
  });
});
