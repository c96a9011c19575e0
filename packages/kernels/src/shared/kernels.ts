import type {
  CapturePattern,
  EnoughFields,
  FieldColumns,
  JsonFieldOptions,
  LogfmtFieldOptions,
} from "./fields.js";
import type { LevelOptions } from "./levels.js";
import type { BitmapChoice, MarkedKeys, WindowKeys } from "./needle.js";
import type { RawPush, RawPushLimits, TakeBytes } from "./raw-push.js";
import type { ContainsOptions, RowSelection } from "./search.js";
import type { TextSet } from "./text-set.js";

/** Every kernel that exists in two forms, the twin in TypeScript and the compiled one; both behave the same. */
export interface Kernels {
  readonly form: "wasm" | "twin";

  /** The compiled form decodes into memory from `take`, when that is given; so does the next one. */
  decodeSnappy(body: Uint8Array, maxBytes: number, take?: TakeBytes): Uint8Array;

  decodeSnappyProtobufPush(body: Uint8Array, limits: RawPushLimits, take?: TakeBytes): RawPush;

  scanJsonPush(body: Uint8Array, limits: RawPushLimits, take?: TakeBytes): RawPush;

  detectLevels(
    bytes: Uint8Array,
    lineStart: Uint32Array,
    lineLength: Uint32Array,
    rows: number,
    out: Uint8Array,
    options: LevelOptions,
  ): void;

  selectContains(
    bytes: Uint8Array,
    offsets: Uint32Array,
    rows: number,
    needle: Uint8Array,
    selection: RowSelection,
    options: ContainsOptions,
  ): void;

  selectContainsAny(
    bytes: Uint8Array,
    offsets: Uint32Array,
    rows: number,
    texts: TextSet,
    selection: RowSelection,
    negate: boolean,
  ): void;

  scanJsonFields(
    bytes: Uint8Array,
    offsets: Uint32Array,
    selection: RowSelection,
    names: readonly string[],
    out: FieldColumns,
    options: JsonFieldOptions,
  ): void;

  scanLogfmtFields(
    bytes: Uint8Array,
    offsets: Uint32Array,
    selection: RowSelection,
    names: readonly string[],
    out: FieldColumns,
    options: LogfmtFieldOptions,
  ): void;

  scanJsonKeys(
    bytes: Uint8Array,
    offsets: Uint32Array,
    selection: RowSelection,
    keys: readonly string[],
    out: FieldColumns,
    options: EnoughFields,
  ): void;

  scanPattern(
    bytes: Uint8Array,
    offsets: Uint32Array,
    selection: RowSelection,
    pattern: CapturePattern,
    out: FieldColumns,
  ): void;

  /** The keys are valid until a kernel is called again. */
  collectNeedleKeys(bytes: Uint8Array, offsets: Uint32Array, rows: number): WindowKeys;

  solveNeedleFilter(keys: readonly Uint32Array[], slots: number, firstBlock: number): Uint8Array;

  /** The bits of the windows of the rows, see shared/needle.ts. */
  markNeedleKeys(
    bytes: Uint8Array,
    offsets: Uint32Array,
    rows: number,
    choice: BitmapChoice,
  ): MarkedKeys & { readonly hasSigns: boolean };

  /** The bits of values by their first keys, each of which may come several times; needle.ts derives the others. */
  markValueKeys(
    first: Uint32Array,
    count: number,
    choice: Pick<BitmapChoice, "slots" | "threshold">,
  ): MarkedKeys;

  /** Lays the bits of up to 64 blocks, an empty array for none, slot by slot: bit `slot * blocks + i` is that of block i. */
  groupNeedleBits(maps: readonly Uint8Array[], slots: number): Uint8Array;

  hashRows(
    bytes: Uint8Array,
    offsets: Uint32Array,
    rows: number,
    high: Uint32Array,
    low: Uint32Array,
  ): void;
}
