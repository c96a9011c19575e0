import type { SampledLines } from "@skald/contracts";

export interface SampleRow {
  readonly stream: string;
  readonly level: string;
  readonly seconds: number;
  readonly line: Uint8Array;
}

/** Knuth's multiplicative hash: what follows each other is spread evenly. */
const spread = 0x9e3779b1;

/** Lines of a tenant, evenly chosen, not more than so many: once there are as many, every second one goes. */
export class TenantSample {
  readonly tenant: string;
  readonly #maxLines: number;
  #rows: SampleRow[] = [];
  #stride = 1;
  #pushes = 0;
  #lineBytes = 0;

  constructor(tenant: string, maxLines: number) {
    this.tenant = tenant;
    this.#maxLines = maxLines;
  }

  /** Of so many rows one is wanted, and stands for them. */
  get stride(): number {
    return this.#stride;
  }

  get lineBytes(): number {
    return this.#lineBytes;
  }

  /** The first row of the next push that is wanted: elsewhere each time, so that no row of a regular push is always left out. */
  nextStart(): number {
    return (Math.imul(++this.#pushes, spread) >>> 0) % this.#stride;
  }

  add(row: SampleRow): void {
    this.#rows.push(row);
    this.#lineBytes += row.line.length;
    if (this.#rows.length < this.#maxLines) return;
    this.#rows = this.#rows.filter((_, i) => i % 2 === 0);
    this.#lineBytes = this.#rows.reduce((sum, { line }) => sum + line.length, 0);
    this.#stride *= 2;
  }

  /** The lines by who gets those of a stream. */
  shares<Owner>(ownerOf: (stream: string) => Owner): Map<Owner, SampledLines> {
    const owners = new Map<string, Owner>();
    const shares = new Map<Owner, SampleRow[]>();
    for (const row of this.#rows) {
      const owner = owners.get(row.stream) ?? ownerOf(row.stream);
      owners.set(row.stream, owner);
      const rows = shares.get(owner);
      if (rows === undefined) shares.set(owner, [row]);
      else rows.push(row);
    }
    return new Map([...shares].map(([owner, rows]) => [owner, this.#linesOf(rows)]));
  }

  #linesOf(rows: readonly SampleRow[]): SampledLines {
    const streams = new Map<string, number>();
    const levels = new Map<string, number>();
    let end = 0;
    return {
      tenant: this.tenant,
      weight: this.#stride,
      streamOf: Uint32Array.from(rows, ({ stream }) => placeIn(streams, stream)),
      levelOf: Uint32Array.from(rows, ({ level }) => placeIn(levels, level)),
      streams: [...streams.keys()],
      levels: [...levels.keys()],
      seconds: Float64Array.from(rows, ({ seconds }) => seconds),
      ends: Uint32Array.from(rows, ({ line }) => {
        end += line.length;
        return end;
      }),
      bytes: Buffer.concat(rows.map(({ line }) => line)),
    };
  }
}

function placeIn(table: Map<string, number>, text: string): number {
  const known = table.get(text);
  if (known !== undefined) return known;
  table.set(text, table.size);
  return table.size - 1;
}
