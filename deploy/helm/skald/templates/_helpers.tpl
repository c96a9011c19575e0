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

{{- define "skald.isDistributed" -}}
{{- if eq .Values.deploymentMode "Distributed" }}true{{- end }}
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

{{/* The services of this mode: target -> words of its values. */}}
{{- define "skald.components" -}}
{{- if include "skald.isDistributed" . }}
distributor: { values: distributor, sleeps: true }
ingester: { values: ingester, isSet: true }
querier: { values: querier, sleeps: true }
query-frontend: { values: queryFrontend, sleeps: true }
query-scheduler: { values: queryScheduler }
index-gateway: { values: indexGateway, isSet: true }
compactor: { values: compactor, isSet: true }
ruler: { values: ruler, isSet: true }
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
  {{- if include "skald.isDistributed" . }}
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
        {{- toYaml .Values.redis.external | nindent 8 }}
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
      endpoint: {{ $loki.storage.s3.endpoint | quote }}
      region: {{ $loki.storage.s3.region | quote }}
      bucketnames: {{ required "set loki.storage.bucketNames.chunks" $loki.storage.bucketNames.chunks }}
      {{- if include "skald.secretName" . }}
      access_key_id: ${S3_ACCESS_KEY}
      secret_access_key: ${S3_SECRET_KEY}
      {{- end }}
      s3forcepathstyle: {{ $loki.storage.s3.s3ForcePathStyle }}
      insecure: {{ $loki.storage.s3.insecure }}
    {{- else }}
    filesystem:
      chunks_directory: {{ $loki.commonConfig.path_prefix }}/chunks
      rules_directory: {{ $loki.commonConfig.path_prefix }}/rules
    {{- end }}
schema_config:
  {{- if $loki.schemaConfig }}
  {{- toYaml $loki.schemaConfig | nindent 2 }}
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
{{- if include "skald.isDistributed" . }}
storage_config:
  tsdb_shipper:
    index_gateway_client:
      server_address: {{ $name }}-index-gateway-headless:{{ $loki.server.grpc_listen_port }}
frontend:
  scheduler_address: {{ $name }}-query-scheduler-headless:{{ $loki.server.grpc_listen_port }}
frontend_worker:
  scheduler_address: {{ $name }}-query-scheduler-headless:{{ $loki.server.grpc_listen_port }}
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

{{- define "skald.config" -}}
{{- $base := fromYaml (include "skald.baseConfig" .) }}
{{- toYaml (mergeOverwrite $base .Values.loki.structuredConfig) }}
{{- end }}
