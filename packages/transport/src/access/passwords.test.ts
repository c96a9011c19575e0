import { describe, expect, it } from "@jest/globals";
import { hashPassword, PasswordChecker, parsePasswordHash } from "./passwords.js";

// The weakest parameters that are taken, so that a check takes some milliseconds. Made by Python's hashlib.scrypt.
const cheap = "$scrypt$ln=10,r=8,p=1$MTIzNDU2Nzg$X9lvMM9+jnN+RVNXgdLV/hVpQxuadcUowkZD8lIeyoU";
const hash = parsePasswordHash(cheap);

describe("hashPassword", () => {
  it("makes a hash of its own each time, which only its password matches", async () => {
    const [one, other] = await Promise.all([hashPassword("söcret"), hashPassword("söcret")]);
    expect(one).toMatch(/^\$scrypt\$ln=14,r=8,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    expect(one).not.toBe(other);
    const checker = new PasswordChecker();
    expect(await checker.check("a", "söcret", parsePasswordHash(one))).toBe(true);
    expect(await checker.check("a", "secret", parsePasswordHash(one))).toBe(false);
  });
});

describe("parsePasswordHash", () => {
  it.each([
    ["a password", "hunter2", /^must be \$scrypt/],
    ["another kind", "$2b$10$abcdefghijklmnopqrstuv", /^must be \$scrypt/],
    ["a cost that is too low", cheap.replace("ln=10", "ln=9"), /too weak or too dear/],
    ["a cost of gigabytes", cheap.replace("ln=10", "ln=24"), /too weak or too dear/],
    ["no blocks", cheap.replace("r=8", "r=0"), /too weak or too dear/],
    ["many lanes", cheap.replace("p=1", "p=99"), /too weak or too dear/],
    ["a short salt", cheap.replace("MTIzNDU2Nzg", "MTIz"), /salt of less than 8/],
    ["a short hash", cheap.replace(/\$[^$]+$/, "$MTIz"), /hash of less than 16/],
  ])("refuses %s", (_, text, message) => {
    expect(() => parsePasswordHash(text)).toThrow(message);
  });
});

describe("PasswordChecker", () => {
  it("remembers what it found, until the hash is another", async () => {
    const checker = new PasswordChecker();
    for (const [password, isRight] of [
      ["secret", true],
      ["wrong", false],
    ] as const) {
      expect(await checker.check("a", password, hash)).toBe(isRight);
      // No promise: nothing was computed.
      expect(checker.check("a", password, hash)).toBe(isRight);
    }
    const other = parsePasswordHash(await hashPassword("other"));
    expect(await checker.check("a", "secret", other)).toBe(false);
  });

  it("computes once what is asked several times at once", async () => {
    const checker = new PasswordChecker();
    const [one, other] = [1, 2].map(() => checker.check("a", "secret", hash));
    expect(one).toBeInstanceOf(Promise);
    expect(other).toBe(one);
    expect(await one).toBe(true);
  });

  it("finds nobody under an unknown name, whatever the password", async () => {
    expect(await new PasswordChecker().check("nobody", "secret", undefined)).toBe(false);
  });

  it("lets those that guess hold up only their name", async () => {
    const checker = new PasswordChecker();
    const guesses = Array.from({ length: 8 }, (_, i) => checker.check("a", `guess ${i}`, hash));
    expect(() => checker.check("a", "one more", hash)).toThrow(/too many passwords/);
    expect(await checker.check("b", "secret", hash)).toBe(true);
    expect(await Promise.all(guesses)).toEqual(guesses.map(() => false));
  });

  it("holds up unknown names as one", async () => {
    const checker = new PasswordChecker();
    const checks = Array.from({ length: 8 }, (_, i) => checker.check(`n${i}`, "x", undefined));
    expect(() => checker.check("n9", "x", undefined)).toThrow(/too many/);
    await Promise.all(checks);
  });

  it("takes no more when checks of many names wait", async () => {
    const checker = new PasswordChecker();
    const checks = Array.from({ length: 64 }, (_, i) => checker.check(`n${i}`, "secret", hash));
    expect(() => checker.check("n64", "secret", hash)).toThrow(/too many/);
    await Promise.all(checks);
    expect(await checker.check("n64", "secret", hash)).toBe(true);
  });
});
