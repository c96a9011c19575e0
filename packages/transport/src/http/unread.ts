import type { Readable } from "node:stream";

const unread = new WeakSet<Readable>();

/** Lets the rest of a refused body stay in the socket: to read it would cost more than its bytes. */
export function leaveUnread(request: Readable, socket: Readable): void {
  unread.add(request);
  // Not at once: the request asks for more as soon as what was just read is parsed.
  setImmediate(() => socket.pause());
}

/** Whether the rest of a refused request is not read. */
export function isUnread(request: Readable): boolean {
  return unread.has(request);
}
