import { expect, it } from "@jest/globals";
import { decodeMember, encodeMember } from "./member.js";
import { fakeMember } from "./testing/fake-members.js";

it("reads what it wrote, and what a later version wrote", () => {
  const { isHealthy: _, ...member } = fakeMember("a", { tokens: Uint32Array.of(1, 4_294_967_295) });
  const text = encodeMember(member);
  expect(decodeMember(text)).toEqual(member);
  expect(decodeMember(text.replace("{", '{"more":1,'))).toMatchObject(member);
});

it("does not take a member of a newer version for none", () => {
  const text = encodeMember(fakeMember("a")).replace("{", '{"version":2,');
  expect(() => decodeMember(text)).toThrow("ring member a has format version 2");
});

it.each(["", "null", "[]", "{}", '{"id":1}', encodeMember(fakeMember("a")).replace("ACTIVE", "X")])(
  "refuses %s",
  (text) => {
    expect(decodeMember(text)).toBeUndefined();
  },
);
