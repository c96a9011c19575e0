import fc from "fast-check";

const text = fc.string({ unit: "grapheme", maxLength: 12 });
const body = fc.uint8Array({ maxLength: 40 });
const optional = { requiredKeys: [] as never[] };

const error = fc
  .tuple(
    fc.record({ code: text, message: text }),
    fc.record(
      {
        status: fc.integer({ min: 100, max: 599 }),
        retryAfterSeconds: fc.double({ noNaN: true }),
        detail: text,
        isFinal: fc.boolean(),
      },
      optional,
    ),
  )
  .map(([own, more]) => ({ ...own, ...more }));

export const arbitraryCall = fc
  .tuple(
    fc.record({
      method: fc.constantFrom("query" as const, "streams" as const, "changes" as const),
      tenant: text,
      actors: fc.array(text, { maxLength: 3 }),
      body,
      avoid: fc.array(text, { maxLength: 3 }),
    }),
    fc.record({ traceparent: text, tracestate: text }, optional),
  )
  .map(([own, more]) => ({ ...own, ...more }));

export const arbitraryAnswer = fc
  .tuple(fc.double({ min: 0, noNaN: true }), fc.record({ body, error, querier: text }, optional))
  .map(([queueSeconds, more]) => ({ queueSeconds, ...more }));

const id = fc.maxSafeNat();
const outcome = fc
  .tuple(id, fc.record({ body, error }, optional))
  .map(([own, more]) => ({ id: own, ...more }));

export const arbitraryTake = fc
  .tuple(
    fc.record({ querier: text, others: fc.array(outcome, { maxLength: 3 }) }),
    fc.record({ finished: outcome, max: fc.nat() }, optional),
  )
  .map(([own, more]) => ({ ...own, ...more }));

const taken = fc.record({ id, call: arbitraryCall });

export const arbitraryTaken = fc
  .tuple(taken, fc.array(taken, { maxLength: 2 }))
  .map(([own, others]) => ({ ...own, others }));

export const arbitraryFinished = fc
  .tuple(text, outcome)
  .map(([querier, own]) => ({ querier, ...own }));

export const arbitraryCancelled = fc.record({ ids: fc.array(id) });
