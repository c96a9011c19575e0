import { field } from "@skald/runtime/config";

const period = field.section("What holds from a day on.", {
  from: field.text("", "first day, YYYY-MM-DD"),
  store: field.text("", "index; tsdb"),
  object_store: field.text("", "filesystem or s3; others are refused"),
  schema: field.text("", "v13"),
  index: field.section("Tables of the index.", {
    prefix: field.text("", "start of their names"),
    period: field.duration("0s", "time range of a table; 24h"),
    path_prefix: field.text("index/", "start of their keys"),
  }),
});

/** `schema_config`: which store holds the data of which time. Data has one form, and is in the store of the last period. */
export const schemaConfig = field.section("Which store holds the data of which time.", {
  configs: field.sections(
    period,
    "periods, sorted by their first day; the last one says in which object_store data is; may be left out",
  ),
});

export type SchemaPeriod = field.Values<typeof period>;
