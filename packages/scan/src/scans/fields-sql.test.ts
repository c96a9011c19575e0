import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { afterAll, expect, it } from "@jest/globals";
import { mergeSegments, openSegmentFile } from "@skald/storage";
import { segmentSource } from "../source/source.js";
import { contextOf, instantLeaf, valuesOf } from "../testing/scans.js";
import { makeDirectory, makeSegment, row } from "../testing/sources.js";
import { scanMetric } from "./metric.js";

const directory = makeDirectory();
afterAll(directory.remove);

const second = 1_000_000_000;
const lines: Record<string, (i: number) => string> = {
  json: (i) =>
    JSON.stringify({
      ...{ level: i % 9 ? "info" : "error", status: 200 + (i % 4), took: (i % 50) / 10 },
      ...(i % 3 ? { http: { method: i % 2 ? "GET" : "POST" } } : {}),
    }),
  logfmt: (i) =>
    `level=${i % 5 ? "info" : "warn"} status="${i % 2 ? 404 : 500}" msg="it is ${i % 7}"`,
};

it.each(Object.keys(lines))(
  "SQL over the columns of %s lines counts what LogQL counts",
  async (app) => {
    const rows = Array.from({ length: 3000 }, (_, i) => row(app, i + 1, lines[app]!(i)));
    const sealed = openSegmentFile(makeSegment(directory.path, rows, { id: app }));
    const path = join(directory.path, `${app}-merged.parquet`);
    const identity = { tenant: "t", id: "m" };
    const fields = { share: 1, asked: new Map() };
    const steps = mergeSegments({
      ...identity,
      path,
      inputs: [{ segment: sealed.segment }],
      fields,
    });
    while (!steps.next().done);
    sealed.close();
    const { segment, close } = openSegmentFile({ ...identity, location: { kind: "file", path } });
    const source = segmentSource(segment);
    const connection = await (await DuckDBInstance.create(":memory:")).connect();
    const names = segment.facts(0)?.fields?.names ?? [];
    expect(names.length).toBeGreaterThan(2);
    for (const name of names) {
      const leaf = instantLeaf(
        `sum by (${name}) (count_over_time({app="${app}"} | ${app} [1s]))`,
        second,
      );
      const task = { plan: leaf, sources: [{ ref: source as never, sequence: 0 }] };
      const { partial } = scanMetric(task, () => source, contextOf());
      const answer = await connection.runAndReadAll(
        `SELECT fields."${name}" AS value, count(*)::INT AS n FROM '${path}' GROUP BY 1`,
      );
      const counts = answer.getRowObjects().map(({ value, n }) => {
        const text = value === null ? "{}" : `{${name}=${JSON.stringify(value)}}`;
        return [text, n] as const;
      });
      expect(Object.fromEntries(counts)).toEqual(valuesOf(leaf, [partial]));
    }
    connection.closeSync();
    close();
  },
);
