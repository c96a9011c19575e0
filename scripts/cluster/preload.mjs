// What a service of a cluster is started with when something is to be wrong with it. SKALD_VIA, "port=other,...": it
// reaches a port by way of another. SKALD_CLOCK_MS: its clock of the day is ahead by so many ms; clocks that only go on are not.
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
    // As `net.connect` calls it, and as others do.
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
