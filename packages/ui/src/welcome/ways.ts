/** Ways to send logs, with the address of this server and the tenant in them. */
export function waysFor(address: string, tenant: string): readonly (readonly [string, string])[] {
  const push = `${address}/loki/api/v1/push`;
  const { hostname, port } = new URL(address);
  const header = tenant === "" ? "" : ` -H 'X-Scope-OrgID: ${tenant}'`;
  return [
    [
      "curl",
      `curl -H 'Content-Type: application/json'${header} ${push} \\
  --data '{"streams":[{"stream":{"app":"web"},
    "values":[["'$(date +%s%N)'","hello level=info"]]}]}'`,
    ],
    [
      "Alloy",
      `local.file_match "logs" {
  path_targets = [{ __path__ = "/var/log/*.log", app = "system" }]
}
loki.source.file "logs" {
  targets    = local.file_match.logs.targets
  forward_to = [loki.write.skald.receiver]
}
loki.write "skald" {
  endpoint { url = "${push}" }
}`,
    ],
    [
      "Promtail",
      `clients:
  - url: ${push}${tenant === "" ? "" : `\n    tenant_id: ${tenant}`}
scrape_configs:
  - job_name: system
    static_configs:
      - targets: [localhost]
        labels: { app: system, __path__: /var/log/*.log }`,
    ],
    [
      "Fluent Bit",
      `[OUTPUT]
    Name   loki
    Match  *
    Host   ${hostname}
    Port   ${port || (address.startsWith("https") ? "443" : "80")}
    Labels app=fluentbit${tenant === "" ? "" : `\n    Tenant_id ${tenant}`}`,
    ],
    [
      "OpenTelemetry",
      `exporters:
  otlphttp:
    endpoint: ${address}/otlp
service:
  pipelines:
    logs:
      receivers: [otlp]
      exporters: [otlphttp]`,
    ],
    [
      "Docker",
      `docker plugin install grafana/loki-docker-driver --alias loki --grant-all-permissions
docker run --log-driver=loki --log-opt loki-url="${push}" nginx`,
    ],
    [
      "pino",
      `import pino from "pino";

const log = pino(pino.transport({
  target: "pino-loki",
  options: { host: "${address}", labels: { app: "web" } },
}));
log.info("hello");`,
    ],
    [
      "Files",
      `while read -r line; do
  printf '{"streams":[{"stream":{"app":"file"},"values":[["%s",%s]]}]}' \\
    "$(date +%s%N)" "$(printf '%s' "$line" | jq -Rs .)" |
    curl -s -H 'Content-Type: application/json'${header} --data @- ${push}
done < app.log`,
    ],
  ];
}
