import { describe, expect, it } from "@jest/globals";
import { PieceChannel } from "./answer-stream.js";

const piece = (n: number) => Uint8Array.of(n);
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("PieceChannel", () => {
  it("hands pieces over one by one, and lets the writer wait for the reader", async () => {
    const channel = new PieceChannel();
    const told: string[] = [];
    const writing = (async () => {
      for (const n of [1, 2, 3]) {
        await channel.put(piece(n));
        told.push(`sent ${n}`);
      }
      channel.end();
    })();
    await turn();
    expect(told).toEqual([]);
    for await (const [n] of channel) {
      told.push(`got ${n}`);
      await turn();
    }
    await writing;
    expect(told).toEqual(["got 1", "sent 1", "got 2", "sent 2", "got 3", "sent 3"]);
  });

  it("fails the reader with what failed the writer", async () => {
    const channel = new PieceChannel();
    const reading = (async () => {
      for await (const _ of channel);
    })();
    await turn();
    channel.end(new Error("the thread died"));
    await expect(reading).rejects.toThrow("the thread died");
  });

  it("does not let a writer wait for a reader that has gone", async () => {
    const channel = new PieceChannel();
    const first = channel.put(piece(1));
    for await (const _ of channel) break;
    await first;
    await channel.put(piece(2));
  });
});
