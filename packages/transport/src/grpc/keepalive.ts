import type { Http2Session } from "node:http2";

export interface KeepaliveOptions {
  /** Pause between pings, and time that an answer to one may take. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
}

/** Longest time that a timer takes. */
const maxTimerMs = 2 ** 31 - 1;

/** Cuts a session whose other side does not answer pings any more: its host is gone, or the way to it. Gives what pings now. */
export function keepAlive(session: Http2Session, options: KeepaliveOptions): () => void {
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
  return ping;
}

/** What is looked at of a session that calls wait on. */
export interface Waiting {
  /** Bytes that came over the connection so far. */
  readonly received: () => number;
  /** Whether anybody waits for an answer. */
  readonly isBusy: () => boolean;
  readonly silenceMs: number;
  readonly ping: () => void;
  /** Nothing came for three times that long, not even the answer to a ping. */
  readonly onSilent: () => void;
}

/** Pings sooner than usual where somebody waits and nothing comes, and says so when still nothing does. */
export function watchSilence(session: Http2Session, waiting: Waiting): void {
  const { received, isBusy, silenceMs, ping, onSilent } = waiting;
  let seen = 0;
  let silent = 0;
  const look = () => {
    const bytes = received();
    silent = isBusy() && bytes === seen ? silent + 1 : 0;
    seen = bytes;
    if (silent === 1) ping();
    if (silent === 3) onSilent();
  };
  const timer = setInterval(look, silenceMs).unref();
  session.once("close", () => clearInterval(timer));
}

/** A timer that keeps no process alive; one that is too long never ends. */
export function after(ms: number, run: () => void): NodeJS.Timeout | undefined {
  return ms > maxTimerMs ? undefined : setTimeout(run, ms).unref();
}
