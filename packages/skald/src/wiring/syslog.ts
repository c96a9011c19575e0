import { type Distributor, SyslogListeners } from "@skald/distributor";
import { syslogListenerOf } from "@skald/distributor/syslog-config";
import { WorkerPool } from "@skald/runtime";
import { syslogSurroundingsOf } from "../config/server.js";
import { threadScripts } from "../thread-scripts.js";
import type { ModuleContext, Parts } from "./module.js";

const maxHeapMib = 512;

/** The ports of `syslog.listeners`, on a thread of their own; undefined without any. */
export function buildSyslog(
  { ledger }: Pick<Parts, "ledger">,
  { config, log, metrics }: ModuleContext,
  distributor: Pick<Distributor, "pushRows">,
): SyslogListeners | undefined {
  const { listeners } = config.syslog;
  if (listeners.length === 0) return undefined;
  const around = syslogSurroundingsOf(config);
  return new SyslogListeners({
    listeners: listeners.map((settings) => syslogListenerOf(settings, around)),
    pool: new WorkerPool({
      url: threadScripts.syslog,
      ...{ size: 1, lazy: true, maxQueued: 1, maxHeapMib },
    }),
    pushRows: (tenant, push) => distributor.pushRows(tenant, push),
    graceMs: config.server.graceful_shutdown_timeout,
    ...{ ledger, metrics, log },
  });
}
