/** Numbers of streams in no order, each once: most label values of many streams belong to one, which is just its number. */
export type StreamList = number | LongList;

export interface LongList {
  count: number;
  /** Of which the first `count` are meant. */
  streams: Uint32Array;
}

const initialRoom = 4;

/** The list with one more stream; the same one unless it was short. */
export function withStream(list: StreamList | undefined, stream: number): StreamList {
  if (list === undefined) return stream;
  if (typeof list === "number") {
    const streams = new Uint32Array(initialRoom);
    streams.set([list, stream]);
    return { count: 2, streams };
  }
  if (list.count === list.streams.length) {
    const grown = new Uint32Array(Math.ceil(1.5 * list.count));
    grown.set(list.streams);
    list.streams = grown;
  }
  list.streams[list.count++] = stream;
  return list;
}

/** The list without the streams that have a flag, by number; undefined when none is left. */
export function withoutStreams(list: StreamList, removed: Uint8Array): StreamList | undefined {
  if (typeof list === "number") return removed[list] === 1 ? undefined : list;
  const { count, streams } = list;
  let left = 0;
  for (let i = 0; i < count; i++) {
    const stream = streams[i]!;
    if (removed[stream] !== 1) streams[left++] = stream;
  }
  if (left <= 1) return left === 0 ? undefined : streams[0]!;
  list.count = left;
  if (4 * left < streams.length) list.streams = streams.slice(0, left);
  return list;
}

/** By number below a limit, 1 for the streams that are in any of the lists. */
export function flagsOf(lists: readonly StreamList[], limit: number): Uint8Array {
  const flags = new Uint8Array(limit);
  for (const list of lists) {
    if (typeof list === "number") {
      if (list < limit) flags[list] = 1;
      continue;
    }
    for (let i = 0; i < list.count; i++) flags[list.streams[i]!] = 1;
  }
  return flags;
}
