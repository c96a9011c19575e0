import { describe, expect, it } from "@jest/globals";
import { RecordReport } from "../push-response.js";
import { bulkAnswer } from "./answers.js";

const reportOf = (records: number, actions?: Uint8Array) =>
  new RecordReport({ records, actions, next: { read: 0, skip: 0, within: "" } });

describe("the answer to a bulk", () => {
  it("is written in steps, and names each action with its outcome", () => {
    const records = 10_000;
    const isRefused = (record: number) => record % 3 === 1;
    const reasonOf = (record: number) => (record % 2 === 0 ? 'a "limit"' : `broken at ${record} é`);
    const statusOf = (record: number) => (record % 2 === 0 ? 429 : 400);
    const all = Array.from({ length: records }, (_, record) => record);
    const actions = Uint8Array.from(all, (record) => record % 2);
    const report = reportOf(records, actions);
    for (const record of all.filter(isRefused))
      report.refuse(record, { status: statusOf(record), reason: reasonOf(record) });
    const { status, body } = bulkAnswer({ status: 400, report });
    expect(status).toBe(200);
    const work = body as Generator<void, Uint8Array>;
    let steps = 0;
    let step = work.next();
    for (; step.done !== true; step = work.next()) steps++;
    expect(steps).toBeGreaterThanOrEqual(Math.floor(records / 1024));
    const { errors, items } = JSON.parse(Buffer.from(step.value).toString());
    expect(errors).toBe(true);
    const types = { 400: "document_parsing_exception", 429: "es_rejected_execution_exception" };
    const outcomes = all.map((record) => {
      const code = statusOf(record) as 400 | 429;
      const error = { type: types[code], reason: reasonOf(record) };
      const outcome = isRefused(record) ? { status: code, error } : { status: 201 };
      return { [record % 2 === 0 ? "index" : "create"]: outcome };
    });
    expect(items).toEqual(outcomes);
  });

  it("keeps one refusal for all records of one reason", () => {
    const report = reportOf(1000);
    for (let record = 0; record < 1000; record++)
      report.refuse(record, { status: 429, reason: `limit ${Math.floor(record / 10) % 2}` });
    expect([report.refused, report.refusals.length, report.firstRefused]).toEqual([1000, 2, 0]);
  });

  it("may be of no action", () => {
    const { body } = bulkAnswer({ status: 204, report: reportOf(0) });
    const { value } = (body as Generator<void, Uint8Array>).next();
    expect(Buffer.from(value as Uint8Array).toString()).toBe(
      '{"took":0,"errors":false,"items":[]}\n',
    );
  });
});
