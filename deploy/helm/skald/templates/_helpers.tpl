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
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "skald.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "skald.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* An image by registry, repository, tag and digest: dict "root" "image" "tag" (the default). */}}
{{- define "skald.image" -}}
{{- $global := .root.Values.global }}
{{- with $global.imageRegistry | default $global.image.registry | default .image.registry }}{{ . }}/{{ end }}
{{- .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .tag }}{{ end }}
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
{{- if not (include "skald.isCluster" .root) }}
{{- $target = "all" }}
{{- else if eq .root.Values.deploymentMode "SimpleScalable" }}
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

{{/* Whether the chart runs a bucket: values of Loki's chart ask for MinIO, and name no other bucket. */}}
{{- define "skald.hasBucket" -}}
{{- $s3 := .Values.loki.storage.s3 }}
{{- if and .Values.minio.enabled (include "skald.isCluster" .) (not $s3.endpoint) (not $s3.region) (not $s3.accessKeyId) (not .Values.loki.storage.use_thanos_objstore) }}true{{- end }}
{{- end }}

{{/* s3 or filesystem; other words are refused. */}}
{{- define "skald.storeType" -}}
{{- $storage := .Values.loki.storage }}
{{- if include "skald.hasBucket" . }}
{{- "s3" }}
{{- else if $storage.use_thanos_objstore }}
{{- $storage.object_store.type | default "s3" }}
{{- else }}
{{- $storage.type | default (ternary "s3" "filesystem" (or (eq (include "skald.isCluster" .) "true") (ne (toString $storage.bucketNames.chunks) ""))) }}
{{- end }}
{{- end }}

{{- define "skald.bucketName" -}}
{{- $name := .Values.loki.storage.bucketNames.chunks }}
{{- if include "skald.hasBucket" . }}
{{- $name | default "chunks" }}
{{- else }}
{{- $name | default "" }}
{{- end }}
{{- end }}

{{/* Where the bucket is, by the words of loki.storage.s3. */}}
{{- define "skald.s3" -}}
{{- $storage := .Values.loki.storage }}
{{- if include "skald.hasBucket" . }}
endpoint: http://{{ include "skald.fullname" . }}-bucket:8333
accessKeyId: {{ .Values.minio.rootUser | quote }}
secretAccessKey: {{ .Values.minio.rootPassword | quote }}
s3ForcePathStyle: true
insecure: true
{{- else if $storage.use_thanos_objstore }}
{{- with $storage.object_store.s3 }}
endpoint: {{ .endpoint | default "" | quote }}
region: {{ .region | default "" | quote }}
accessKeyId: {{ .access_key_id | default "" | quote }}
secretAccessKey: {{ .secret_access_key | default "" | quote }}
insecure: {{ default false .insecure }}
http_config: {{ toYaml (default dict .http) | nindent 2 }}
sse: {{ toYaml (default dict .sse) | nindent 2 }}
{{- end }}
{{- else }}
{{- toYaml $storage.s3 }}
{{- end }}
{{- end }}

{{/* The secret with the bucket's key, or nothing when there is none. */}}
{{- define "skald.secretName" -}}
{{- if .Values.loki.storage.s3.existingSecret }}
{{- .Values.loki.storage.s3.existingSecret }}
{{- else if get (fromYaml (include "skald.s3" .)) "accessKeyId" }}
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
{{- $s3 := fromYaml (include "skald.s3" .) }}
{{- $redis := .Values.redis }}
{{- toYaml (list $s3.accessKeyId $s3.secretAccessKey $s3.existingSecret $redis.password $redis.existingSecret $redis.external.password $redis.external.sentinel_password) }}
{{- end }}

{{/* Whether nginx stands in front: always with several processes, with one where it has something to do. */}}
{{- define "skald.hasGateway" -}}
{{- $gateway := .Values.gateway }}
{{- if $gateway.enabled }}
{{- if or (include "skald.isCluster" .) $gateway.basicAuth.enabled $gateway.ingress.enabled }}true{{- end }}
{{- end }}
{{- end }}

{{/* The secret with the users of the gateway. */}}
{{- define "skald.usersSecret" -}}
{{- .Values.gateway.basicAuth.existingSecret | default (printf "%s-gateway" (include "skald.fullname" .)) }}
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
    {{- if and .Values.ingester.zoneAwareReplication.enabled .Values.ingester.zoneAwareReplication.zones }}
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
    {{- if eq (include "skald.storeType" .) "s3" }}
    {{- $s3 := fromYaml (include "skald.s3" .) }}
    s3:
      endpoint: {{ $s3.endpoint | default "" | quote }}
      region: {{ $s3.region | default "" | quote }}
      bucketnames: {{ required "set loki.storage.bucketNames.chunks: several processes need a bucket; minio.enabled brings one for tests" (include "skald.bucketName" .) }}
      {{- if include "skald.secretName" . }}
      access_key_id: ${S3_ACCESS_KEY}
      secret_access_key: ${S3_SECRET_KEY}
      {{- end }}
      s3forcepathstyle: {{ default false $s3.s3ForcePathStyle }}
      insecure: {{ default false $s3.insecure }}
      {{- range $key := list "http_config" "backoff_config" "sse" }}
      {{- with get $s3 $key }}
      {{ $key }}:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
    {{- else }}
    filesystem:
      chunks_directory: {{ $loki.storage.filesystem.chunks_directory | default (printf "%s/chunks" $loki.commonConfig.path_prefix) }}
      rules_directory: {{ $loki.storage.filesystem.rules_directory | default (printf "%s/rules" $loki.commonConfig.path_prefix) }}
    {{- end }}
schema_config:
  {{- if and $loki.schemaConfig (not $loki.useTestSchema) }}
  {{- if include "skald.withoutMinio" . }}
  {{- toYaml $loki.schemaConfig | replace "object_store: s3" "object_store: filesystem" | nindent 2 }}
  {{- else }}
  {{- toYaml $loki.schemaConfig | nindent 2 }}
  {{- end }}
  {{- else }}
  configs:
    - from: "2024-01-01"
      store: tsdb
      object_store: {{ include "skald.storeType" . }}
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
{{- range $name := list "analytics" "block_builder" "bloom_build" "bloom_gateway" "compactor_grpc_client" "distributor" "frontend" "frontend_worker" "index_gateway" "ingester" "ingester_client" "operational_config" "querier" "query_range" "query_scheduler" "ruler" "storage_config" "syslog" "tracing" }}
{{- with get $loki $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with omit $loki.commonConfig "path_prefix" "replication_factor" "compactor_address" "compactor_grpc_address" }}
common:
  {{- toYaml . | nindent 2 }}
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

{{/* The ports of the listeners for syslog, as pods have them: `ports`, a list. */}}
{{- define "skald.syslogPorts" -}}
{{- $config := fromYaml (include "skald.config" .) }}
ports:
{{- with $config.syslog }}
{{- range .listeners }}
{{- $isUdp := eq (default "tcp" .protocol) "udp" }}
{{- $port := splitList ":" .address | last }}
  - name: {{ ternary "udp" "tcp" $isUdp }}-{{ $port }}
    protocol: {{ ternary "UDP" "TCP" $isUdp }}
    containerPort: {{ $port }}
{{- end }}
{{- end }}
{{- end }}

{{/* The processes that take pushes. */}}
{{- define "skald.pushTarget" -}}
{{- if include "skald.isDistributed" . }}distributor{{ else if include "skald.isCluster" . }}write{{ else }}all{{ end }}
{{- end }}

{{/* Whether values ask for the MinIO of Loki's chart, and one process can do without. */}}
{{- define "skald.withoutMinio" -}}
{{- if and .Values.minio.enabled (eq (include "skald.storeType" .) "filesystem") (not (include "skald.isCluster" .)) }}true{{- end }}
{{- end }}

{{/* Values of Loki's chart that are set and have no effect, a line each, with the reason. */}}
{{- define "skald.warnings" -}}
{{- $root := . }}
{{- if include "skald.withoutMinio" . }}
- minio: one process keeps its data on its disk
{{- else if include "skald.hasBucket" . }}
- minio: the bucket is SeaweedFS in one pod, which is meant for tests
{{- else if .Values.minio.enabled }}
- minio: the bucket is that of loki.storage
{{- end }}
{{- if and .Values.loki.pattern_ingester.enabled (not (include "skald.hasPatterns" .)) }}
- loki.pattern_ingester.enabled: set patternIngester.replicas
{{- end }}
{{- if and .Values.ingester.zoneAwareReplication.enabled (not .Values.ingester.zoneAwareReplication.zones) }}
- ingester.zoneAwareReplication.enabled: list the zones in ingester.zoneAwareReplication.zones
{{- end }}
{{- if and (not (include "skald.isCluster" .)) (gt (int .Values.singleBinary.replicas) 1) }}
- singleBinary.replicas: one process runs, because several would not share what they hold; use SimpleScalable
{{- end }}
{{- with .Values.loki.storage.bucketNames.ruler }}
{{- if ne . (include "skald.bucketName" $root) }}
- loki.storage.bucketNames.ruler: rules are in the bucket of the chunks
{{- end }}
{{- end }}
{{- $running := list }}
{{- range $target, $component := fromYaml (include "skald.components" .) }}
{{- $running = append $running $component.values }}
{{- end }}
{{- range $path, $why := fromYaml (.Files.Get "files/loki-values.yaml") }}
{{- $names := splitList "." $path }}
{{- range $top := ternary $running (list (first $names)) (eq (first $names) "*") }}
{{- $value := get $root.Values $top }}
{{- range $name := rest $names }}
{{- $value = get (ternary $value dict (kindIs "map" $value)) $name }}
{{- end }}
{{- $switch := ternary $value dict (kindIs "map" $value) }}
{{- if and $value (ne (toString $switch.enabled) "false") (ne (toString $switch.replicas) "0") }}
- {{ join "." (prepend (rest $names) $top) }}: {{ $why }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
