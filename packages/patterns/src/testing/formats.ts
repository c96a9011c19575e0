import { seededRandom } from "@skald/testkit";

/** Lines of one program and the template that each was made from. */
interface Sample {
  readonly name: string;
  readonly templates: readonly string[];
}

/** What stands in a template for a value that changes. */
const makers: Readonly<Record<string, (random: () => number) => string>> = {
  n: (random) => String(Math.floor(random() * 100_000)),
  ip: (random) => Array.from({ length: 4 }, () => Math.floor(random() * 256)).join("."),
  id: (random) =>
    Math.floor(random() * 2 ** 52)
      .toString(16)
      .padStart(13, "4"),
  time: (random) => new Date(1.7e12 + random() * 1e10).toISOString(),
  clock: (random) => new Date(1.7e12 + random() * 1e10).toISOString().slice(11, 19),
  ms: (random) => `${(random() * 1000).toFixed(2)}ms`,
  user: (random) => pick(random, ["alice", "bob", "carol", "dave", "erin", "frank", "grace"]),
  host: (random) => `node-${Math.floor(random() * 900) + 100}`,
  path: (random) => pick(random, ["orders", "users", "items", "carts"]),
  file: (random) => pick(random, ["main.go", "server.go", "store.go", "index.go"]),
};

function pick(random: () => number, values: readonly string[]): string {
  return values[Math.floor(random() * values.length)] as string;
}

/** Ten kinds of logs that are common. */
export const samples: readonly Sample[] = [
  {
    name: "access log",
    templates: [
      '{ip} - - [{time}] "GET /api/v1/{path}/{n} HTTP/1.1" 200 {n}',
      '{ip} - {user} [{time}] "POST /login HTTP/1.1" 302 {n} "-" "curl/8.0"',
      '{ip} - - [{time}] "GET /static/app.js HTTP/1.1" 304 0 "http://x/" "Mozilla"',
    ],
  },
  {
    name: "logfmt",
    templates: [
      'ts={time} level=info caller={file}:{n} msg="request done" status=200 duration={ms}',
      'ts={time} level=info caller={file}:{n} msg="cache refreshed" entries={n}',
      'ts={time} level=error caller={file}:{n} msg="upstream failed" upstream={ip} err="connection refused"',
    ],
  },
  {
    name: "json",
    templates: [
      '{"ts":"{time}","level":"info","msg":"user {user} logged in from {ip}"}',
      '{"ts":"{time}","level":"info","msg":"order {n} shipped to warehouse {n} after {ms}"}',
      '{"ts":"{time}","level":"warn","msg":"retrying job {id} because the queue is full"}',
    ],
  },
  {
    name: "syslog",
    templates: [
      "Jan 12 {clock} {host} sshd[{n}]: Accepted publickey for {user} from {ip} port {n} ssh2",
      "Jan 12 {clock} {host} sshd[{n}]: Failed password for invalid user {user} from {ip} port {n} ssh2",
      "Jan 12 {clock} {host} CRON[{n}]: pam_unix(cron:session): session opened for user root by (uid=0)",
      "Jan 12 {clock} {host} kernel: [{n}.{n}] Out of memory: Killed process {n} (java)",
    ],
  },
  {
    name: "hdfs",
    templates: [
      "{n} {n} INFO dfs.DataNode$PacketResponder: PacketResponder {n} for block blk_{n} terminating",
      "{n} {n} INFO dfs.FSNamesystem: BLOCK* NameSystem.addStoredBlock: blockMap updated: {ip}:{n} is added to blk_{n} size {n}",
      "{n} {n} INFO dfs.DataNode$DataXceiver: Receiving block blk_{n} src: /{ip}:{n} dest: /{ip}:{n}",
    ],
  },
  {
    name: "java",
    templates: [
      "{time} INFO [main] com.acme.OrderService - Created order {n} for customer {user}",
      "{time} WARN [pool-1] com.acme.PaymentClient - Payment {id} took {ms} and will be retried",
      "{time} ERROR [pool-2] com.acme.Repository - Could not acquire a connection within {n} ms",
    ],
  },
  {
    name: "kubernetes",
    templates: [
      'I0112 {clock}.{n} 1 {file}:{n}] "Successfully assigned pod" pod="default/web-{id}" node="{host}"',
      'E0112 {clock}.{n} 1 {file}:{n}] "Error syncing pod, skipping" err="back-off {n}s" podUID={id}',
      "W0112 {clock}.{n} 1 {file}:{n}] watch of *v1.Pod ended with: too old resource version: {n} ({n})",
    ],
  },
  {
    name: "postgres",
    templates: [
      "{time} UTC [{n}] LOG:  checkpoint complete: wrote {n} buffers ({n}%); sync files={n}",
      "{time} UTC [{n}] LOG:  duration: {ms} statement: SELECT id FROM orders WHERE user_id = {n}",
      '{time} UTC [{n}] ERROR:  duplicate key value violates unique constraint "orders_pkey"',
    ],
  },
  {
    name: "python",
    templates: [
      "{time} - worker - INFO - Task tasks.send_mail[{id}] succeeded in {n}.{n}s: None",
      "{time} - worker - INFO - Task tasks.send_mail[{id}] received",
      "{time} - worker - WARNING - Connection to broker at {ip}:{n} lost, attempt {n} of 10",
    ],
  },
  {
    name: "plain",
    templates: [
      "worker {n} started with {n} threads on {host}",
      "worker {n} finished job {id} in {ms}",
      "disk usage of /var/lib is at {n} percent, cleaning up old segments",
    ],
  },
];

/** Lines of a sample in random order: the index of the template, and the line. */
export function linesOf({ templates }: Sample, count: number, seed: number): [number, string][] {
  const integers = seededRandom(seed);
  const random = () => integers(2 ** 31) / 2 ** 31;
  return Array.from({ length: count }, () => {
    const at = Math.floor(random() * templates.length);
    const line = (templates[at] as string).replace(/\{([a-z]+)\}/g, (_, name: string) =>
      (makers[name] as (typeof makers)[string])(random),
    );
    return [at, line];
  });
}
