import type { Logger, Metrics } from "@skald/runtime";
import { Access, refusalReasons } from "@skald/transport";
import type { Config } from "../config/root.js";

/** Reads the users file, if one is configured; throws what is wrong with it. */
export function openAccess({
  config,
  log,
  metrics,
}: {
  readonly config: Pick<Config, "auth" | "auth_enabled" | "no_auth_tenant">;
  readonly log: Logger;
  readonly metrics: Metrics;
}): Access | undefined {
  const { users_file: file } = config.auth;
  if (file === "") return undefined;
  const refusals = metrics.counter("auth_refused_total", "Requests that were refused.", ["reason"]);
  for (const reason of refusalReasons) refusals.inc({ reason }, 0);
  const failures = metrics.counter(
    "auth_users_file_failures_total",
    "Changes of the users file that could not be used; the users stayed as they were.",
  );
  return new Access({
    file,
    tenancy: { authEnabled: config.auth_enabled, noAuthTenant: config.no_auth_tenant },
    onRefusal: (reason) => refusals.inc({ reason }),
    onReload: (error) => {
      if (error === undefined) {
        log.info("the users file was read again", { file });
        return;
      }
      failures.inc();
      log.error("kept the old users, because the users file cannot be used", { file, error });
    },
  });
}
