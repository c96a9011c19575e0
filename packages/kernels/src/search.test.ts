import { describe, expect, it } from "@jest/globals";
import { type ContainsOptions, type RowSelection, selectAll } from "./index.js";
import { forms } from "./testing/forms.js";

const plain: ContainsOptions = { ignoreCase: false, negate: false };

/** Lines one behind the other with their offsets. */
function blockOf(lines: readonly string[]): { bytes: Uint8Array; offsets: Uint32Array } {
  const bytes = Buffer.from(lines.join(""), "latin1");
  const offsets = new Uint32Array(lines.length + 1);
  for (let i = 0; i < lines.length; i++) offsets[i + 1] = offsets[i]! + lines[i]!.length;
  return { bytes, offsets };
}

describe.each(forms)("selectContains, %s", (_name, kernels) => {
  function select(
    lines: readonly string[],
    needle: string,
    options: ContainsOptions = plain,
    selection: RowSelection = selectAll(lines.length),
  ): readonly number[] {
    const { bytes, offsets } = blockOf(lines);
    const wanted = Buffer.from(needle, "latin1");
    kernels.selectContains(bytes, offsets, lines.length, wanted, selection, options);
    return [...selection.rows.subarray(0, selection.count)];
  }

  const lines = ["error one", "", "no", "Error two", "xerror", "err", "or", "e"];
  it.each<[string, Partial<ContainsOptions>, number[]]>([
    ["error", {}, [0, 4]],
    ["error", { ignoreCase: true }, [0, 3, 4]],
    ["ERROR", { ignoreCase: true }, [0, 3, 4]],
    ["error", { negate: true }, [1, 2, 3, 5, 6, 7]],
    ["error", { ignoreCase: true, negate: true }, [1, 2, 5, 6, 7]],
    ["e", {}, [0, 4, 5, 7]],
    ["o", {}, [0, 2, 3, 4, 6]],
    ["or", {}, [0, 3, 4, 6]],
    ["error one", {}, [0]],
    ["error one!", {}, []],
    ["", {}, [0, 1, 2, 3, 4, 5, 6, 7]],
    ["", { negate: true }, []],
    ["no such text anywhere in the block, and longer than all of it together", {}, []],
  ])("finds %j with %j", (needle, options, want) => {
    expect(select(lines, needle, { ...plain, ...options })).toEqual(want);
  });

  it("folds ASCII letters only", () => {
    const odd = ["@[`{", "`{@[", "\xc4", "\xe4", "K", "k"];
    expect(select(odd, "@", { ignoreCase: true, negate: false })).toEqual([0, 1]);
    expect(select(odd, "`{@", { ignoreCase: true, negate: false })).toEqual([1]);
    expect(select(odd, "\xe4", { ignoreCase: true, negate: false })).toEqual([3]);
    expect(select(odd, "K", { ignoreCase: true, negate: false })).toEqual([4, 5]);
  });

  it("narrows an earlier selection", () => {
    const selection = { rows: Uint32Array.of(3, 4, 6, 99), count: 3 };
    expect(select(lines, "or", plain, selection)).toEqual([3, 4, 6]);
    expect(select(lines, "err", plain, selection)).toEqual([4]);
    expect(select(lines, "zzz", plain, selection)).toEqual([]);
    expect(select(lines, "", plain, selection)).toEqual([]);
  });

  it("finds a text that begins in an unselected row only where it is selected", () => {
    expect(select(["aXb", "aXb"], "X", plain, { rows: Uint32Array.of(1), count: 1 })).toEqual([1]);
    expect(select(["aX", "Xb"], "XX", plain)).toEqual([]);
    expect(select(["aX", "XXb"], "XX", plain)).toEqual([1]);
  });

  it("ignores rows and offsets beyond the block", () => {
    const selection = { rows: Uint32Array.of(0, 1, 7), count: 9 };
    const offsets = Uint32Array.of(0, 3, 4_000_000_000);
    kernels.selectContains(Buffer.from("abcabc"), offsets, 2, Buffer.from("bc"), selection, plain);
    expect([...selection.rows.subarray(0, selection.count)]).toEqual([0, 1]);
  });

  it("reads shared memory", () => {
    const bytes = new Uint8Array(new SharedArrayBuffer(6));
    bytes.set(Buffer.from("abcabd"));
    const selection = selectAll(2);
    kernels.selectContains(bytes, Uint32Array.of(0, 3, 6), 2, Buffer.from("bd"), selection, plain);
    expect([...selection.rows.subarray(0, selection.count)]).toEqual([1]);
  });
});
