import type { PeerBook } from "./peer-book.js";
import type { Peer } from "./resolve.js";

/**
 * Runs something for each peer of a book for as long as it is in it, until the signal is aborted. It is told what to end by its
 * signal, and `onCount` how many there are.
 */
export async function followPeers(
  book: PeerBook,
  run: (peer: Peer, signal: AbortSignal) => Promise<void>,
  { signal, onCount }: { readonly signal: AbortSignal; readonly onCount: (peers: number) => void },
): Promise<void> {
  const running = new Map<string, { end: AbortController; done: Promise<void> }>();
  const ended = new Set<Promise<void>>();
  const look = () => {
    const { peers } = book;
    onCount(peers.length);
    const wanted = new Set(peers.map(({ address }) => address));
    for (const [address, { end, done }] of running) {
      if (wanted.has(address)) continue;
      running.delete(address);
      end.abort();
      ended.add(done);
      void done.finally(() => ended.delete(done));
    }
    for (const peer of peers) {
      if (running.has(peer.address) || signal.aborted) continue;
      const end = new AbortController();
      const done = run(peer, AbortSignal.any([signal, end.signal]));
      running.set(peer.address, { end, done });
    }
  };
  const stop = book.onChange(look);
  look();
  await book.run(signal);
  stop();
  await Promise.all([...ended, ...[...running.values()].map(({ done }) => done)]);
}
