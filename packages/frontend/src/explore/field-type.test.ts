import { expect, it } from "@jest/globals";
import { type FieldType, fieldTypeOf } from "./detected-fields.js";

it.each<[FieldType, string[]]>([
  ["int", ["0", "-7", "+7", "9223372036854775807"]],
  ["float", ["1.5", "1e3", "-.5", "9223372036854775808", "NaN", "Inf", "-infinity", "0x1p-2"]],
  ["boolean", ["true", "F", "False"]],
  ["duration", ["1.5s", "250ms", "-3s", "1h30m", "10us"]],
  ["bytes", ["1kB", "2MiB", "1.5GB", "10 KB", "0B", "1,024 b"]],
  ["string", ["", "1d", "abc", "0x10", "1_000", "10.0.0.1", "B"]],
])("%s", (type, texts) => {
  expect(texts.map((text) => `${text} ${fieldTypeOf(text)}`)).toEqual(
    texts.map((text) => `${text} ${type}`),
  );
});
