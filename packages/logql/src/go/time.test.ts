import { describe, expect, it } from "@jest/globals";
import { formatGoTime, goTime, isZone } from "./time.js";
import { parseGoTime } from "./time-parse.js";

const ns = 1_710_239_405_012_340_000n; // 2024-03-12T10:30:05.01234Z

describe("formatGoTime", () => {
  it.each([
    ["2006-01-02T15:04:05Z07:00", "2024-03-12T10:30:05Z"],
    ["02 Jan 06 3:04PM", "12 Mar 24 10:30AM"],
    ["Monday, January _2 2006 03:04:05 pm", "Tuesday, March 12 2024 10:30:05 am"],
    ["1/2 __2 002", "3/12  72 072"],
    ["05.000 05.000000000 05.999999999 05,99", "05.012 05.012340000 05.01234 05,01"],
    ["-07 -0700 -07:00 Z0700 MST", "+00 +0000 +00:00 Z UTC"],
    ["no layout", "no layout"],
    ["20060102 150405", "20240312 103005"],
    ["Janitor Monster", "Janitor Monster"],
  ])("%s", (layout, want) => {
    expect(formatGoTime(goTime(ns), layout)).toBe(want);
  });

  it("shows a zone of the database, summer time included", () => {
    const zoned = (at: bigint) => formatGoTime(goTime(at, "America/New_York"), "15:04 -0700 MST");
    expect(zoned(ns)).toBe("06:30 -0400 EDT");
    expect(zoned(1_705_314_605_000_000_000n)).toBe("05:30 -0500 EST");
  });

  it("knows a zone however many texts that are none came before", () => {
    for (let i = 0; i < 1500; i++) expect(isZone(`Nowhere/${i}`)).toBe(false);
    expect(formatGoTime(goTime(ns, "Asia/Tokyo"), "15:04 -0700")).toBe("19:30 +0900");
  });

  it("formats times before 1970", () => {
    expect(formatGoTime(goTime(-1n), "2006-01-02 15:04:05.999999999")).toBe(
      "1969-12-31 23:59:59.999999999",
    );
  });
});

describe("parseGoTime", () => {
  it.each([
    ["2006-01-02", "UTC", "2024-03-12", 1_710_201_600_000_000_000n],
    [
      "2006-01-02T15:04:05Z07:00",
      "UTC",
      "2024-03-12T10:30:05.01234+02:00",
      1_710_232_205_012_340_000n,
    ],
    ["2006-01-02T15:04:05.000Z", "UTC", "2024-03-12T10:30:05.012Z", 1_710_239_405_012_000_000n],
    ["Jan _2 2006 3:04PM", "UTC", "Mar 12 2024 10:30PM", 1_710_282_600_000_000_000n],
    ["2006-01-02 15:04", "Europe/Berlin", "2024-07-01 12:00", 1_719_828_000_000_000_000n],
    ["06-002", "UTC", "24-072", 1_710_201_600_000_000_000n],
    ["Jan 02_2006", "UTC", "Mar 12_2024", 1_710_201_600_000_000_000n],
    ["Monday 02 January 2006", "UTC", "Tuesday 12 March 2024", 1_710_201_600_000_000_000n],
    ["2006-01-02 MST", "UTC", "2024-03-12 UTC", 1_710_201_600_000_000_000n],
  ])("%s in %s: %s", (layout, zone, text, want) => {
    expect(parseGoTime(layout, zone, text)?.ns).toBe(want);
  });

  it.each([
    ["2006-01-02", "2024-13-01"],
    ["2006-01-02", "2024-02-30"],
    ["2006-01-02", "2024-3-1"],
    ["2006-01-02", "2024-03-12 x"],
    ["15:04", "24:00"],
    ["2006-01-02T15:04:05.000", "2024-03-12T10:30:05.1"],
    ["Jan 2", "Foo 2"],
    ["-0700", "0700"],
    ["2006Z07:00:00", "2024Z"],
    ["_2006", "2024"],
  ])("%s refuses %s", (layout, text) => {
    expect(parseGoTime(layout, "UTC", text)).toBeUndefined();
  });
});
