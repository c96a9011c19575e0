import { describe, expect, it } from "@jest/globals";
import { bulkAnswer } from "./answers.js";

describe("the answer to a bulk", () => {
  it("is written in steps, and names each action with its outcome", () => {
    const records = 10_000;
    const isRefused = (record: number) => record % 3 === 1;
    const reasonOf = (record: number) => (record % 2 === 0 ? 'a "limit"' : `broken at ${record} é`);
    const statusOf = (record: number) => (record % 2 === 0 ? 429 : 400);
    const all = Array.from({ length: records }, (_, record) => record);
    const refused = all
      .filter(isRefused)
      .map((record) => ({ record, status: statusOf(record), reason: reasonOf(record) }));
    const actions = Uint8Array.from(all, (record) => record % 2);
    const { status, body } = bulkAnswer({
      status: 400,
      report: { records, refused, actions, next: undefined as never },
    });
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

  it("may be of no action", () => {
    const report = { records: 0, refused: [], actions: undefined, next: undefined as never };
    const { body } = bulkAnswer({ status: 204, report });
    const { value } = (body as Generator<void, Uint8Array>).next();
    expect(Buffer.from(value as Uint8Array).toString()).toBe(
      '{"took":0,"errors":false,"items":[]}\n',
    );
  });
});
