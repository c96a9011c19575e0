import { expect, it } from "@jest/globals";
import { TimeText } from "./times.js";

const second = 1_795_168_800;

it.each([
  ["2026-11-20T10:00:00Z", second, 0],
  ["2026-11-20T10:00:00.000000001Z", second, 1],
  ["2026-11-20T10:00:00.5Z", second, 500_000_000],
  ["2026-11-20T10:00:00.1234567891Z", second, 123_456_789],
  ["2026-11-20t10:00:00z", second, 0],
  ["2026-11-20 10:00:00", second, 0],
  ["2026-11-20 10:00:00,25", second, 250_000_000],
  ["2026-11-20T12:00:00+02:00", second, 0],
  ["2026-11-20T12:00:00.1+0200", second, 100_000_000],
  ["2026-11-20T04:30:00-05:30", second, 0],
  ["2026-11-20T12:00:00+02", second, 0],
  ["2024-02-29T00:00:00Z", 1_709_164_800, 0],
  ["1969-12-31T23:59:59Z", -1, 0],
  ["1795168800", second, 0],
  ["1795168800.", second, 0],
  ["1795168800.123", second, 123_000_000],
  ["1795168800123", second, 123_000_000],
  ["1795168800123.5", second, 123_500_000],
  ["1795168800123456", second, 123_456_000],
  ["1795168800123456789", second, 123_456_789],
  ["1.7951688e9", second, 0],
  ["1.795168800123e12", second, 123_000_000],
  ["0", 0, 0],
])("%s is a time", (text, seconds, nanos) => {
  const time = new TimeText();
  // The second time has the date of the first.
  for (let i = 0; i < 2; i++) {
    expect(time.read(Buffer.from(`x${text}x`), 1, text.length)).toBe(true);
    expect([time.seconds, time.nanos]).toEqual([seconds, nanos]);
  }
});

it.each([
  "",
  "x",
  "2026-02-30T00:00:00Z",
  "2026-13-01T00:00:00Z",
  "2026-00-01T00:00:00Z",
  "2026-11-20T24:00:00Z",
  "2026-11-20T10:60:00Z",
  "2026-11-20T1a:00:00Z",
  "2026-11-20T10:00:00.Z",
  "2026-11-20T10:00:00.1x2Z",
  "2026-11-20T10.00:00Z",
  "2026-11-2xT10:00:00Z",
  "2026-11-20",
  "10:00:00",
  "-5",
  "1e999",
  "123456789012345678901",
  "9".repeat(100),
])("'%s' is none", (text) => {
  expect(new TimeText().read(Buffer.from(text), 0, text.length)).toBe(false);
});
