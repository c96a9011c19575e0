import { expect, it } from "@jest/globals";
import { freeBuffer } from "./free-buffer.js";

it.each([
  ["has memory of its own", Buffer.from(new ArrayBuffer(65_536)), 0],
  ["is a view of a larger one", Buffer.from(new ArrayBuffer(65_536), 0, 65_535), 65_535],
  ["is small", Buffer.from(new ArrayBuffer(4095)), 4095],
])("a buffer that %s: what is left of it", (_, buffer, left) => {
  freeBuffer(buffer);
  expect(buffer.length).toBe(left);
});
