/** A stream of a push body for tests; bytes stand where a text must not be valid UTF-8. */
export interface BodyStream {
  readonly labels: string | Uint8Array;
  readonly rows: readonly BodyRow[];
}

export interface BodyRow {
  readonly ns: bigint;
  readonly line: string | Uint8Array;
  readonly metadata?: readonly (readonly [string | Uint8Array, string | Uint8Array])[];
}

/** A push body as agents send it: protobuf in one raw snappy block, made of literals only. */
export function makePushBody(streams: readonly BodyStream[]): Uint8Array {
  return snappyLiterals(Buffer.concat(streams.map((stream) => field(1, encodeStream(stream)))));
}

/** Wraps bytes into a raw snappy block that compresses nothing. */
export function snappyLiterals(bytes: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [varint(BigInt(bytes.length))];
  for (let at = 0; at < bytes.length; at += 65536) {
    const literal = bytes.subarray(at, at + 65536);
    const rest = literal.length - 1;
    parts.push(Uint8Array.of(61 << 2, rest & 0xff, rest >> 8), literal);
  }
  return Buffer.concat(parts);
}

function encodeStream(stream: BodyStream): Uint8Array {
  return Buffer.concat([
    field(1, bytesOf(stream.labels)),
    ...stream.rows.map((row) => field(2, encodeRow(row))),
  ]);
}

function encodeRow(row: BodyRow): Uint8Array {
  const seconds = row.ns / 1_000_000_000n - (row.ns % 1_000_000_000n < 0n ? 1n : 0n);
  const nanos = row.ns - seconds * 1_000_000_000n;
  const time = [Uint8Array.of(0x08), varint(seconds), Uint8Array.of(0x10), varint(nanos)];
  const pairs = (row.metadata ?? []).map(([name, value]) =>
    field(3, Buffer.concat([field(1, bytesOf(name)), field(2, bytesOf(value))])),
  );
  return Buffer.concat([field(1, Buffer.concat(time)), field(2, bytesOf(row.line)), ...pairs]);
}

function field(number: number, bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of((number << 3) | 2), varint(BigInt(bytes.length)), bytes]);
}

function varint(value: bigint): Uint8Array {
  const out: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 0x7fn; rest >>= 7n) out.push(Number(rest & 0x7fn) | 0x80);
  out.push(Number(rest));
  return Uint8Array.from(out);
}

function bytesOf(text: string | Uint8Array): Uint8Array {
  return typeof text === "string" ? Buffer.from(text) : text;
}
