import { describe, expect, it } from "@jest/globals";
import { Ledger } from "./ledger.js";

const MiB = 1024 * 1024;

describe("Ledger", () => {
  it("lets one push of a tenant hold all but the reserve, several only half", () => {
    const ledger = new Ledger(8 * MiB);
    const alone = ledger.open("a");
    alone.receive(7 * MiB);
    alone.close();
    const [first, second] = [ledger.open("a"), ledger.open("a")];
    first.receive(2 * MiB);
    second.receive(2 * MiB);
    expect(() => second.receive(1)).toThrow(
      "the pushes of tenant 'a' hold more than 4194304 bytes, half of distributor.max_inflight_bytes",
    );
    ledger.open("b").receive(2 * MiB);
  });

  it("keeps a reserve for small pushes", () => {
    const ledger = new Ledger(8 * MiB);
    for (const tenant of ["a", "b"]) ledger.open(tenant).receive(3.5 * MiB);
    const large = ledger.open("c");
    expect(() => large.receive(65 * 1024)).toThrow("pushes hold 8388608 bytes");
    const small = ledger.open("d");
    small.receive(2048);
    small.close();
    expect(ledger.bytes).toBe(7 * MiB);
  });

  it("is scarce while decoded bodies hold more than half, and tells when that ends", () => {
    let told = 0;
    const ledger = new Ledger(8 * MiB, () => told++);
    const [one, two] = [ledger.open("a"), ledger.open("b")];
    one.inflate(4 * MiB);
    expect(ledger.isScarce).toBe(false);
    two.inflate(MiB);
    expect(ledger.isScarce).toBe(true);
    two.close();
    expect([ledger.isScarce, told]).toEqual([false, 1]);
    one.close();
    expect([ledger.bytes, told, [...ledger.holdings()]]).toEqual([0, 1, []]);
  });

  it("says what tenants hold", () => {
    const ledger = new Ledger(0);
    const claim = ledger.open("a");
    claim.receive(10);
    claim.inflate(30);
    expect([...ledger.holdings()]).toEqual([
      { tenant: "a", kind: "received", value: 10 },
      { tenant: "a", kind: "inflated", value: 30 },
    ]);
  });
});
