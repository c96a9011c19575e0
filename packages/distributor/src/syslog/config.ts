import { type SyslogLabelField, syslogLabelFields } from "@skald/push";
import { field, tlsServerBlock } from "@skald/runtime/config";
import { checkTenant } from "@skald/transport/tenants";
import { checkTls, servesTls, type TlsOptions } from "@skald/transport/tls";
import type { SyslogListener } from "./listen.js";

/** The section `syslog` of the configuration. */
export const syslogConfig = field.section("Takes lines in by the syslog protocol.", {
  listeners: field.sections(
    field.section("A port that takes syslog messages.", {
      address: field.text("", "host:port, or :port for all addresses"),
      protocol: field.choice("tcp", ["tcp", "udp", "tls"], "how messages arrive"),
      tenant: field.text(
        "",
        "tenant of its lines, for senders cannot name one; empty: no_auth_tenant, if auth_enabled is false",
      ),
      labels: field.textMap("labels of all its lines; without any {job: syslog}"),
      label_fields: field.list(
        ["app"],
        `fields of messages that become labels: ${syslogLabelFields.join(", ")}; the others become structured metadata`,
      ),
      framing: field.choice(
        "auto",
        ["auto", "octet_counting", "newline"],
        "how messages follow each other on a connection; auto: a message that begins with its length is counted, any other is a line",
      ),
      time_zone: field.text(
        "Local",
        "zone of times that name none, as in Europe/Berlin; Local: that of this machine",
      ),
      use_incoming_timestamp: field.toggle(
        true,
        "lines have the time that their message names; false: that of their arrival",
      ),
      max_message_size: field.size("256KB", "longest message; what is longer is cut", {
        min: 480,
        max: 1024 * 1024,
      }),
      max_connections: field.integer(1000, "connections at a time; more are closed at once", {
        min: 1,
        max: 100_000,
      }),
      tls_config: tlsServerBlock(""),
    }),
    "ports that take syslog messages",
  ),
});

type SyslogSettings = field.Values<typeof syslogConfig>["listeners"][number];

/** What the listeners need to know of the rest of the configuration. */
export interface SyslogSurroundings {
  readonly authEnabled: boolean;
  readonly noAuthTenant: string;
  /** `server.tls_min_version` and `server.tls_cipher_suites`. */
  readonly minVersion: string;
  readonly cipherSuites: readonly string[];
}

/** What is wrong with a listener, with the names of its keys; files are not read. */
export function syslogProblems(settings: SyslogSettings, around: SyslogSurroundings): string[] {
  const { protocol, tenant, labels, label_fields, time_zone } = settings;
  const problems: string[] = [];
  if (splitAddress(settings.address) === undefined)
    problems.push(`address: "${settings.address}" is not host:port, such as 0.0.0.0:5514`);
  if (around.authEnabled && tenant === "")
    problems.push("tenant is missing: senders of syslog cannot name theirs");
  else if (tenant !== "") problems.push(...messageOf(() => checkTenant(tenant)));
  for (const name of Object.keys(labels))
    if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name)) problems.push(`labels: ${name} is no label name`);
  for (const name of label_fields)
    if (!(syslogLabelFields as readonly string[]).includes(name))
      problems.push(`label_fields: ${name} is not one of ${syslogLabelFields.join(", ")}`);
  for (const name of label_fields)
    if (labels[name] !== undefined) problems.push(`label_fields: ${name} is among labels, too`);
  problems.push(...messageOf(() => checkZone(time_zone)).map((text) => `time_zone: ${text}`));
  const tls = tlsOf(settings, around);
  if (protocol !== "tls") {
    if (servesTls(tls)) problems.push(`tls_config: protocol ${protocol} has no TLS; use tls`);
  } else if (!servesTls(tls)) problems.push("tls_config: set cert_file and key_file");
  else problems.push(...checkTls(tls).map((text) => `tls_config: ${text}`));
  return problems;
}

/** The listener that the settings describe; they have no problems. */
export function syslogListenerOf(
  settings: SyslogSettings,
  around: SyslogSurroundings,
): SyslogListener {
  const { protocol, labels, tenant } = settings;
  const [host, port] = splitAddress(settings.address) ?? ["", 0];
  return {
    name: `${protocol}/${settings.address}`,
    ...{ protocol, host, port },
    tenant: tenant === "" ? around.noAuthTenant : tenant,
    framing: settings.framing,
    maxMessageBytes: settings.max_message_size,
    maxConnections: settings.max_connections,
    mapping: {
      labels: Object.keys(labels).length === 0 ? { job: "syslog" } : labels,
      labelFields: settings.label_fields as SyslogLabelField[],
      timeZone: settings.time_zone,
      usesNamedTime: settings.use_incoming_timestamp,
    },
    ...(protocol === "tls" ? { tls: tlsOf(settings, around) } : {}),
  };
}

function tlsOf(
  { tls_config: section }: SyslogSettings,
  { minVersion, cipherSuites }: SyslogSurroundings,
): TlsOptions {
  const { cert, key, client_ca, cert_file, key_file, client_ca_file, client_auth_type } = section;
  return {
    cert: { text: cert, file: cert_file },
    key: { text: key, file: key_file },
    clientCa: { text: client_ca, file: client_ca_file },
    clientAuth: client_auth_type,
    ...{ minVersion, cipherSuites },
  };
}

/** `0.0.0.0:514`, `:514` or `[::1]:514`; undefined for anything else. */
function splitAddress(text: string): [host: string, port: number] | undefined {
  const found = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s[\]]*)):(\d{1,5})$/.exec(text);
  const port = Number(found?.[3]);
  if (found === null || port > 65_535) return undefined;
  return [found[1] ?? found[2] ?? "", port];
}

function checkZone(zone: string): void {
  if (zone !== "Local") new Intl.DateTimeFormat("en-US", { timeZone: zone });
}

function messageOf(check: () => void): string[] {
  try {
    check();
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}
