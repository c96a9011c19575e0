import type { Http2Session } from "node:http2";

export interface KeepaliveOptions {
  /** Pause between pings, and time that an answer to one may take. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
}

/** Longest time that a timer takes. */
const maxTimerMs = 2 ** 31 - 1;

/** Cuts a session whose other side does not answer pings any more: its host is gone, or the way to it. */
export function keepAlive(session: Http2Session, options: KeepaliveOptions): void {
  const { keepaliveMs, keepaliveTimeoutMs } = options;
  let late: NodeJS.Timeout | undefined;
  const ping = () => {
    if (session.destroyed || late !== undefined) return;
    late = after(keepaliveTimeoutMs, () => session.destroy(new Error("pings are not answered")));
    const isSent = session.ping(() => {
      clearTimeout(late);
      late = undefined;
    });
    if (isSent) return;
    clearTimeout(late);
    late = undefined;
  };
  const timer = setInterval(ping, Math.min(keepaliveMs, maxTimerMs)).unref();
  session.once("close", () => {
    clearInterval(timer);
    clearTimeout(late);
  });
}

/** A timer that keeps no process alive; one that is too long never ends. */
export function after(ms: number, run: () => void): NodeJS.Timeout | undefined {
  return ms > maxTimerMs ? undefined : setTimeout(run, ms).unref();
}
