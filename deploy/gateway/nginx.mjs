// Makes the nginx.conf of the gateway from routes.mjs, for each place where it runs.
import { refusal, routes, services, usualTimeout } from "./routes.mjs";

/** The files, by path in the checkout, with their texts. */
export function nginxFiles() {
  const port = "{{ .Values.loki.server.http_listen_port }}";
  const ifPatterns = '{{- if include "skald.hasPatterns" . }}';
  return {
    "deploy/docker/nginx.conf": nginxConf({
      listen: 3100,
      // Docker starts and ends containers at any time, so names are looked up again and again.
      global: ["# The resolver of Docker.", "resolver 127.0.0.11 valid=2s ipv6=off;"],
      inServer: services.map((name) => `set $${variable(name)} http://${name}:3100;`),
      address: (name) => `$${variable(name)}`,
    }),
    "deploy/k8s/overlays/cluster/nginx.conf": nginxConf({
      listen: 3100,
      global: upstreams((name) => `${name}:3100`),
      address: (name) => `http://${name}`,
    }),
    "deploy/helm/skald/files/nginx.conf": nginxConf({
      listen: 8080,
      global: upstreams(
        (name) => `{{ include "skald.serviceOf" (dict "root" . "target" "${name}") }}:${port}`,
        [ifPatterns, "{{- end }}"],
      ),
      users: [
        "{{- if .Values.gateway.basicAuth.enabled }}",
        '  auth_basic "Skald";',
        "  auth_basic_user_file /etc/nginx/secrets/.htpasswd;",
        "{{- if .Values.loki.tenants }}",
        "  proxy_set_header X-Scope-OrgID $remote_user;",
        "{{- end }}",
        "{{- end }}",
      ],
      address: (name) => `http://${name}`,
      ifPatterns: [
        ifPatterns,
        "{{- else }}",
        '    location ~ ^/pattern/ring$ { return 404 "no pattern ingester runs\\n"; }',
        "{{- end }}",
      ],
    }),
  };
}

/**
 * A service of Kubernetes keeps its address, and each connection to it may reach another pod. It is named as often as a request
 * is tried, because nginx tries each server of an upstream once.
 */
function upstreams(hostOf, [start, end] = []) {
  return services.flatMap((name) => {
    const isOptional = name === "pattern-ingester" && start !== undefined;
    const server = `  server ${hostOf(name)} max_fails=0;`;
    const block = [`upstream ${name} {`, server, server, server, "}"];
    return isOptional ? [start, ...block, end] : block;
  });
}

function nginxConf({ listen, global, users = [], inServer = [], address, ifPatterns }) {
  const locations = routes.slice(0, -1).flatMap((route) => {
    const lines = locationOf(route, address).map(indented(4));
    if (ifPatterns === undefined || route.service !== "pattern-ingester") return lines;
    const [start, otherwise, other, end] = ifPatterns;
    return [start, ...lines, otherwise, other, end];
  });
  return `${[
    "# One address in front of the services, which passes each path to its service.",
    "# Written by `node scripts/docs.mjs` from deploy/gateway: do not edit.",
    ...start,
    ...global.map(indented(2)),
    "",
    ...http,
    ...users,
    "",
    "  server {",
    `    listen ${listen};`,
    ...inServer.map(indented(4)),
    "",
    "    # A browser gets the web interface, a probe its answer.",
    "    location = / {",
    "      absolute_redirect off;",
    '      if ($http_accept ~ "text/html") { return 302 /ui/; }',
    "      default_type text/plain;",
    '      return 200 "OK\\n";',
    "    }",
    "",
    ...locations,
    ...locationOf({ ...routes.at(-1), pattern: undefined }, address).map(indented(4)),
    "  }",
    "}",
  ].join("\n")}\n`;
}

function locationOf({ pattern, service, refused, repeats, once, timeout }, address) {
  const refuse = `return 403 ${JSON.stringify(refusal)};`;
  const name = pattern === undefined ? "/" : `~ ${pattern}`;
  if (refused === "all") return [`location ${name} { ${refuse} }`];
  const lines = [];
  if (refused === "changes") lines.push(`if ($request_method !~ ^(GET|HEAD)$) { ${refuse} }`);
  lines.push(`proxy_pass ${address(service)};`);
  if (timeout !== undefined) lines.push(`proxy_read_timeout ${timeout};`);
  if (once)
    lines.push(
      "# nginx repeats a PUT, and a delete request must not arrive twice.",
      "proxy_next_upstream off;",
    );
  if (repeats)
    lines.push(
      "# Queries change nothing, so that one whose frontend ends goes to another, also when it was sent by POST.",
      "proxy_request_buffering on;",
      "proxy_next_upstream error timeout non_idempotent;",
    );
  if (lines.length === 1) return [`location ${name} { ${lines[0]} }`];
  return [`location ${name} {`, ...lines.map(indented(2)), "}"];
}

const start = `pid /tmp/nginx.pid;
error_log /dev/stderr warn;
worker_processes auto;

events {
  worker_connections 4096;
}

http {
  access_log off;
  server_tokens off;
  client_body_temp_path /tmp/body;
  proxy_temp_path /tmp/proxy;
  fastcgi_temp_path /tmp/fastcgi;
  uwsgi_temp_path /tmp/uwsgi;
  scgi_temp_path /tmp/scgi;
`.split("\n");

const http = `  map $http_upgrade $connection_upgrade {
    default upgrade;
    "" "";
  }

  # Agents push a few MB at a time; the services apply the limits of tenants.
  client_max_body_size 100m;
  proxy_http_version 1.1;
  proxy_request_buffering off;
  proxy_buffering off;
  proxy_set_header Host $http_host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  proxy_set_header Upgrade $http_upgrade;
  proxy_set_header Connection $connection_upgrade;
  # When an instance does not take the connection, or ends before it answers, another is tried. A POST that was sent is not sent
  # twice, unless it is a query, and nothing is tried again after a minute.
  proxy_next_upstream error timeout;
  proxy_next_upstream_tries 3;
  proxy_next_upstream_timeout 60s;
  proxy_connect_timeout 2s;
  # The time that a query may take.
  proxy_read_timeout ${usualTimeout};
  proxy_send_timeout 60s;`.split("\n");

function variable(name) {
  return name.replaceAll("-", "_");
}

function indented(width) {
  return (line) => (line === "" || line.startsWith("{{-") ? line : " ".repeat(width) + line);
}
