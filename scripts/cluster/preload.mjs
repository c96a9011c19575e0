// A preload that makes something wrong with a service of a cluster. SKALD_VIA "port=other,..." replaces
// ports that the service connects to. SKALD_CLOCK_MS sets the clock of the day ahead, but not the monotonic clocks.
import { Socket } from "node:net";

const { SKALD_VIA = "", SKALD_CLOCK_MS = "0" } = process.env;
const via = new Map(
  SKALD_VIA.split(",")
    .filter((one) => one !== "")
    .map((one) => one.split("=").map(Number)),
);
const aheadMs = Number(SKALD_CLOCK_MS);

if (via.size > 0) {
  const connect = Socket.prototype.connect;
  Socket.prototype.connect = function (...args) {
    // `net.connect` calls it with a list of arguments, other callers with the arguments.
    const options = Array.isArray(args[0]) ? args[0][0] : args[0];
    const other = via.get(Number(options?.port));
    if (other !== undefined) options.port = other;
    return connect.apply(this, args);
  };
}

if (aheadMs !== 0) {
  const OwnDate = Date;
  globalThis.Date = class ShiftedDate extends OwnDate {
    constructor(...args) {
      if (args.length === 0) super(OwnDate.now() + aheadMs);
      else super(...args);
    }

    static now() {
      return OwnDate.now() + aheadMs;
    }
  };
}
