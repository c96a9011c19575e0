import fc from "fast-check";
import type {
  AskedSpan,
  ChangesRequest,
  HeldChanges,
  HeldChangesRequest,
  SpanChanges,
} from "../../index.js";
import { ns, range, record, text } from "./common.js";

const spans = fc.array(record<AskedSpan, "since">({ fromNs: ns, toNs: ns }, { since: text }), {
  maxLength: 3,
});
const spanChanges = fc.array(
  record<SpanChanges>({ token: text, changed: fc.array(range, { maxLength: 3 }) }),
  { maxLength: 3 },
);

export const arbitraryHeldChangesRequest: fc.Arbitrary<HeldChangesRequest> =
  record<HeldChangesRequest>({ tenant: text, spans });

export const arbitraryHeldChanges: fc.Arbitrary<HeldChanges> = record<HeldChanges, "lookedFromNs">(
  { spans: spanChanges },
  { lookedFromNs: ns },
);

export const arbitraryChangesRequest: fc.Arbitrary<ChangesRequest> = record<
  ChangesRequest,
  "actors"
>({ tenants: fc.array(text, { minLength: 1, maxLength: 3 }), spans }, { actors: fc.array(text) });

export const arbitraryChangesAnswer = record<{ readonly spans: readonly SpanChanges[] }>({
  spans: spanChanges,
});
