import { bytesEqual, readText } from "../row/bytes.js";

const entries = 256;
const valueMax = 128;

/**
 * Remembers the answers of a test of texts by the bytes of the text: labels repeat few values, and making a string
 * and running a regex costs more than comparing bytes.
 */
export function memoTest(
  test: (text: string) => boolean,
): (bytes: Uint8Array, start: number, end: number) => boolean {
  const values: (Uint8Array | undefined)[] = new Array(entries).fill(undefined);
  const answers = new Uint8Array(entries);
  return (bytes, start, end) => {
    if (end - start > valueMax) return test(readText(bytes, start, end));
    let hash = end - start;
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
    const at = (hash ^ (hash >>> 13)) & (entries - 1);
    const known = values[at];
    if (known !== undefined && bytesEqual(bytes, start, end, known)) return answers[at] === 1;
    const answer = test(readText(bytes, start, end));
    values[at] = bytes.slice(start, end);
    answers[at] = answer ? 1 : 0;
    return answer;
  };
}
