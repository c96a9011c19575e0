{{- define "skald.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "skald.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "skald.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "skald.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "skald.selectorLabels" -}}
app.kubernetes.io/name: {{ include "skald.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "skald.labels" -}}
{{ include "skald.selectorLabels" . }}
app.kubernetes.io/part-of: skald
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{- define "skald.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "skald.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* An image by registry, repository and tag: dict "image" ... "tag" the default. */}}
{{- define "skald.image" -}}
{{- $name := printf "%s:%s" .image.repository (default .tag .image.tag) }}
{{- if .image.registry }}
{{- printf "%s/%s" .image.registry $name }}
{{- else }}
{{- $name }}
{{- end }}
{{- end }}

{{/* Whether several processes share the work. */}}
{{- define "skald.isCluster" -}}
{{- if ne .Values.deploymentMode "SingleBinary" }}true{{- end }}
{{- end }}

{{- define "skald.isDistributed" -}}
{{- if eq .Values.deploymentMode "Distributed" }}true{{- end }}
{{- end }}

{{/* Whether a pattern ingester runs. */}}
{{- define "skald.hasPatterns" -}}
{{- if include "skald.isDistributed" . }}
{{- if .Values.patternIngester.replicas }}true{{- end }}
{{- else if .Values.loki.pattern_ingester.enabled }}true{{- end }}
{{- end }}

{{/* The service that runs a target in this mode: dict "root" "target". */}}
{{- define "skald.serviceOf" -}}
{{- $target := .target }}
{{- if eq .root.Values.deploymentMode "SimpleScalable" }}
{{- $target = get (dict "distributor" "write" "ingester" "write" "querier" "read" "query-frontend" "read") .target | default "backend" }}
{{- end }}
{{- include "skald.objectName" (dict "root" .root "target" $target) }}
{{- end }}

{{/* The name of a service's objects: dict "root" "target"; the single process has that of the release. */}}
{{- define "skald.objectName" -}}
{{- if eq .target "all" }}
{{- include "skald.fullname" .root }}
{{- else }}
{{- printf "%s-%s" (include "skald.fullname" .root) .target }}
{{- end }}
{{- end }}

{{/* The secret with the bucket's key, or nothing when there is none. */}}
{{- define "skald.secretName" -}}
{{- if .Values.loki.storage.s3.existingSecret }}
{{- .Values.loki.storage.s3.existingSecret }}
{{- else if .Values.loki.storage.s3.accessKeyId }}
{{- printf "%s-s3" (include "skald.fullname" .) }}
{{- end }}
{{- end }}

{{/* The secret with the passwords of Redis, or nothing when there are none. */}}
{{- define "skald.redisSecretName" -}}
{{- if include "skald.isCluster" . }}
{{- if .Values.redis.existingSecret }}
{{- .Values.redis.existingSecret }}
{{- else if or .Values.redis.enabled .Values.redis.external.password .Values.redis.external.sentinel_password }}
{{- printf "%s-redis" (include "skald.fullname" .) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Changes with the secrets that the values have, so that pods restart. */}}
{{- define "skald.secretValues" -}}
{{- $s3 := .Values.loki.storage.s3 }}
{{- $redis := .Values.redis }}
{{- toYaml (list $s3.accessKeyId $s3.secretAccessKey $s3.existingSecret $redis.password $redis.existingSecret $redis.external.password $redis.external.sentinel_password) }}
{{- end }}

{{/* The services of this mode: target -> words of its values. Rows that are not uploaded yet are on disks of those that hold rows. */}}
{{- define "skald.components" -}}
{{- if include "skald.isDistributed" . }}
distributor: { values: distributor, sleeps: true }
ingester: { values: ingester, isSet: true, holdsRows: true }
querier: { values: querier, sleeps: true }
query-frontend: { values: queryFrontend, sleeps: true }
query-scheduler: { values: queryScheduler }
index-gateway: { values: indexGateway, isSet: true }
compactor: { values: compactor, isSet: true }
ruler: { values: ruler, isSet: true }
{{- if include "skald.hasPatterns" . }}
pattern-ingester: { values: patternIngester, isSet: true }
{{- end }}
{{- else if include "skald.isCluster" . }}
write: { values: write, isSet: true, holdsRows: true }
read: { values: read, sleeps: true }
backend: { values: backend, isSet: true }
{{- else }}
all: { values: singleBinary, isSet: true }
{{- end }}
{{- end }}

{{/* The configuration before structuredConfig is laid over it. */}}
{{- define "skald.baseConfig" -}}
{{- $name := include "skald.fullname" . }}
{{- $loki := .Values.loki }}
auth_enabled: {{ $loki.auth_enabled }}
server:
  {{- toYaml $loki.server | nindent 2 }}
common:
  path_prefix: {{ $loki.commonConfig.path_prefix }}
  {{- if include "skald.isCluster" . }}
  replication_factor: {{ $loki.commonConfig.replication_factor }}
  persist_tokens: true
  ring:
    {{- if .Values.ingester.zoneAwareReplication.enabled }}
    zone_awareness_enabled: true
    {{- end }}
    kvstore:
      store: redis
      redis:
        {{- if .Values.redis.enabled }}
        endpoint: {{ $name }}-redis:6379
        {{- else }}
        {{- toYaml (omit .Values.redis.external "password" "sentinel_password") | nindent 8 }}
        {{- end }}
        {{- if include "skald.redisSecretName" . }}
        password: ${REDIS_PASSWORD:-}
        {{- end }}
        {{- if or .Values.redis.existingSecret .Values.redis.external.sentinel_password }}
        sentinel_password: ${REDIS_SENTINEL_PASSWORD:-}
        {{- end }}
  {{- else }}
  replication_factor: 1
  ring:
    kvstore:
      store: inmemory
  {{- end }}
  storage:
    {{- if eq $loki.storage.type "s3" }}
    s3:
      endpoint: {{ $loki.storage.s3.endpoint | default "" | quote }}
      region: {{ $loki.storage.s3.region | default "" | quote }}
      bucketnames: {{ required "set loki.storage.bucketNames.chunks" $loki.storage.bucketNames.chunks }}
      {{- if include "skald.secretName" . }}
      access_key_id: ${S3_ACCESS_KEY}
      secret_access_key: ${S3_SECRET_KEY}
      {{- end }}
      s3forcepathstyle: {{ $loki.storage.s3.s3ForcePathStyle }}
      insecure: {{ $loki.storage.s3.insecure }}
      {{- with $loki.storage.s3.http_config }}
      http_config:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $loki.storage.s3.backoff_config }}
      backoff_config:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- else }}
    filesystem:
      chunks_directory: {{ $loki.storage.filesystem.chunks_directory | default (printf "%s/chunks" $loki.commonConfig.path_prefix) }}
      rules_directory: {{ $loki.storage.filesystem.rules_directory | default (printf "%s/rules" $loki.commonConfig.path_prefix) }}
    {{- end }}
schema_config:
  {{- if $loki.schemaConfig }}
  {{- if include "skald.withoutMinio" . }}
  {{- toYaml $loki.schemaConfig | replace "object_store: s3" "object_store: filesystem" | nindent 2 }}
  {{- else }}
  {{- toYaml $loki.schemaConfig | nindent 2 }}
  {{- end }}
  {{- else }}
  configs:
    - from: "2024-01-01"
      store: tsdb
      object_store: {{ $loki.storage.type }}
      schema: v13
      index:
        prefix: index_
        period: 24h
  {{- end }}
{{- if include "skald.isCluster" . }}
{{- $scheduler := printf "%s-headless:%s" (include "skald.serviceOf" (dict "root" . "target" "query-scheduler")) (toString $loki.server.grpc_listen_port) }}
storage_config:
  tsdb_shipper:
    index_gateway_client:
      server_address: {{ include "skald.serviceOf" (dict "root" . "target" "index-gateway") }}-headless:{{ $loki.server.grpc_listen_port }}
frontend:
  scheduler_address: {{ $scheduler }}
frontend_worker:
  scheduler_address: {{ $scheduler }}
{{- end }}
{{- if include "skald.hasPatterns" . }}
pattern_ingester:
  enabled: true
{{- end }}
{{- if $loki.limits_config }}
limits_config:
  {{- toYaml $loki.limits_config | nindent 2 }}
{{- end }}
{{- if $loki.compactor }}
compactor:
  {{- toYaml $loki.compactor | nindent 2 }}
{{- end }}
{{- if $loki.rulerConfig }}
ruler:
  {{- toYaml $loki.rulerConfig | nindent 2 }}
{{- end }}
{{- if $loki.runtimeConfig }}
runtime_config:
  file: /etc/skald/runtime.yaml
{{- end }}
{{- end }}

{{/* Sections of the configuration that the values have under their own names. */}}
{{- define "skald.sections" -}}
{{- $loki := .Values.loki }}
{{- range $name := list "analytics" "bloom_build" "bloom_gateway" "distributor" "frontend" "frontend_worker" "index_gateway" "ingester" "ingester_client" "operational_config" "querier" "query_range" "query_scheduler" "ruler" "storage_config" "tracing" "ui" }}
{{- with get $loki $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with omit $loki.pattern_ingester "enabled" }}
pattern_ingester:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "skald.config" -}}
{{- $base := fromYaml (include "skald.baseConfig" .) }}
{{- $sections := fromYaml (include "skald.sections" . | default "{}") }}
{{- toYaml (mergeOverwrite $base $sections .Values.loki.structuredConfig) }}
{{- end }}

{{/* Whether values ask for the MinIO of Loki's chart, and one process can do without. */}}
{{- define "skald.withoutMinio" -}}
{{- if and .Values.minio.enabled (eq .Values.loki.storage.type "filesystem") (not (include "skald.isCluster" .)) }}true{{- end }}
{{- end }}

{{/* Values of Loki's chart that are set and have no effect, a line each. */}}
{{- define "skald.warnings" -}}
{{- $root := . }}
{{- if include "skald.withoutMinio" . }}
- minio: this chart brings no MinIO; the process keeps its data on its disk
{{- else if .Values.minio.enabled }}
- minio: this chart brings no MinIO; the bucket is that of loki.storage
{{- end }}
{{- if and .Values.loki.pattern_ingester.enabled (not (include "skald.hasPatterns" .)) }}
- loki.pattern_ingester.enabled: set patternIngester.replicas
{{- end }}
{{- range $key, $why := fromYaml (include "skald.ignoredValues" .) }}
{{- $value := get $root.Values $key }}
{{- if $value }}
{{- if not (or (eq (toString $value.enabled) "false") (eq (toString $value.replicas) "0")) }}
- {{ $key }}: {{ $why }}
{{- end }}
{{- end }}
{{- end }}
{{- range $target, $component := fromYaml (include "skald.components" .) }}
{{- $values := get $root.Values $component.values }}
{{- range $key := list "hostAliases" "image" "initContainers" "extraContainers" "serviceLabels" "serviceAnnotations" "selectorLabels" "maxSurge" "topologySpreadConstraints" "command" "dnsConfig" "sidecar" }}
{{- if get $values $key }}
- {{ $component.values }}.{{ $key }}: has no effect
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.loki.storage.bucketNames.ruler }}
{{- if ne . $root.Values.loki.storage.bucketNames.chunks }}
- loki.storage.bucketNames.ruler: rules are in the bucket of the chunks
{{- end }}
{{- end }}
{{- end }}

{{/* Parts of Loki's chart that this chart has not: a value that switches one on gets a warning with the reason. */}}
{{- define "skald.ignoredValues" -}}
adminApi: part of the enterprise edition of Loki
bloomBuilder: queries need no blooms here
bloomCompactor: queries need no blooms here
bloomGateway: queries need no blooms here
bloomPlanner: queries need no blooms here
chunksCache: queriers keep what they read on their own disks
enterprise: part of the enterprise edition of Loki
enterpriseGateway: part of the enterprise edition of Loki
ingress: use gateway.ingress
kubectlImage: no job uses it
lokiCanary: no canary is installed
memberlist: the rings are in Redis
memcached: results are cached in memory or in Redis (query_range.results_cache)
migrate: Loki's chunks cannot be read
overridesExporter: has no counterpart
resultsCache: results are cached in memory or in Redis (query_range.results_cache)
rollout_operator: zones are rolled out by their own sets
sidecar: rules come by the API
tableManager: has no counterpart
test: no test is installed
ui: has no counterpart
{{- end }}
