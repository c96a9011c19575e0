{{/* A Deployment or StatefulSet: dict "root" "name" (of the object) "target" "component" "values" "zone". */}}
{{- define "skald.workload" -}}
{{- $root := .root }}
{{- $values := .values }}
{{- $loki := $root.Values.loki }}
{{- $global := $root.Values.global }}
{{- $disk := merge (dict) (first (default (list (dict)) $values.persistence.claims)) $values.persistence }}
{{- $keepsDisk := and .component.isSet $disk.enabled (ne (toString $disk.volumeClaimsEnabled) "false") }}
{{- $isIngester := default false .component.holdsRows }}
{{- $isScaled := false }}
{{- with $values.autoscaling }}
{{- $isScaled = and .enabled (ne $.target "all") }}
{{- end }}
apiVersion: apps/v1
kind: {{ ternary "StatefulSet" "Deployment" (default false .component.isSet) }}
metadata:
  name: {{ .name }}
  labels:
    {{- include "skald.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .target }}
    {{- with $values.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with (merge (dict) (default dict $values.annotations) $loki.annotations) }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  revisionHistoryLimit: {{ $loki.revisionHistoryLimit }}
  {{- if not $isScaled }}
  replicas: {{ if eq .target "all" }}1{{ else if eq (toString $values.enabled) "false" }}0{{ else }}{{ $values.replicas }}{{ end }}
  {{- end }}
  {{- if .component.isSet }}
  serviceName: {{ include "skald.objectName" (dict "root" $root "target" .target) }}-headless
  podManagementPolicy: {{ $values.podManagementPolicy | default "Parallel" }}
  {{- if $isIngester }}
  # A rollout waits until all services have seen the last pod at its new address.
  minReadySeconds: 30
  {{- end }}
  {{- if $keepsDisk }}
  # The disk of a removed pod stays until a person deletes it.
  persistentVolumeClaimRetentionPolicy:
    whenScaled: {{ $disk.whenScaled | default "Retain" }}
    whenDeleted: {{ $disk.whenDeleted | default "Retain" }}
  {{- end }}
  {{- else }}
  strategy:
    rollingUpdate:
      maxSurge: {{ default 1 $values.maxSurge }}
      maxUnavailable: 0
  {{- end }}
  selector:
    matchLabels:
      {{- include "skald.selectorLabels" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .target }}
      {{- if .zone }}
      zone: {{ .zone }}
      {{- end }}
  template:
    metadata:
      labels:
        {{- include "skald.selectorLabels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .target }}
        app.kubernetes.io/part-of: skald
        {{- if .zone }}
        zone: {{ .zone }}
        {{- end }}
        {{- with (merge (dict) $values.podLabels $loki.podLabels $root.Values.commonLabels) }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        checksum/config: {{ include "skald.config" $root | sha256sum }}
        checksum/secrets: {{ include "skald.secretValues" $root | sha256sum }}
        prometheus.io/scrape: "true"
        prometheus.io/port: {{ $loki.server.http_listen_port | quote }}
        {{- with (merge (dict) $values.podAnnotations $loki.podAnnotations) }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "skald.serviceAccountName" $root }}
      # The preStop hook of an ingester reads the size of its set.
      automountServiceAccountToken: {{ $isIngester }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $global.priorityClassName | default $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      enableServiceLinks: {{ $loki.enableServiceLinks }}
      {{- if eq (toString $values.hostUsers) "false" }}
      hostUsers: false
      {{- end }}
      {{- with $values.hostAliases }}
      hostAliases:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.dnsConfig | default $loki.dnsConfig }}
      dnsConfig:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      securityContext:
        {{- toYaml $loki.podSecurityContext | nindent 8 }}
      {{- if .zone }}
      nodeSelector:
        topology.kubernetes.io/zone: {{ .zone }}
        {{- with $values.nodeSelector }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- else }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      topologySpreadConstraints:
        {{- with $values.topologySpreadConstraints }}
        {{- toYaml . | nindent 8 }}
        {{- else }}
        {{- range $key := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
        - maxSkew: 1
          topologyKey: {{ $key }}
          # Two ingesters on one node could be lost together, and then there is no quorum.
          whenUnsatisfiable: {{ ternary "DoNotSchedule" "ScheduleAnyway" (and $isIngester (eq $key "kubernetes.io/hostname")) }}
          labelSelector:
            matchLabels:
              {{- include "skald.selectorLabels" $root | nindent 14 }}
              app.kubernetes.io/component: {{ $.target }}
        {{- end }}
        {{- end }}
      {{- with $values.initContainers }}
      initContainers:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: skald
          image: {{ include "skald.image" (dict "root" $root "image" (mergeOverwrite (dict) $loki.image (default dict $values.image)) "tag" $root.Chart.AppVersion) }}
          imagePullPolicy: {{ $loki.image.pullPolicy }}
          args:
            - -config.file=/etc/skald/config.yaml
            - -config.expand-env
            - -target={{ .target }}
            {{- if .zone }}
            - -ingester.availability-zone={{ .zone }}
            {{- end }}
            {{- with concat $global.extraArgs $values.extraArgs }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            - name: http
              containerPort: {{ $loki.server.http_listen_port }}
            - name: grpc
              containerPort: {{ $loki.server.grpc_listen_port }}
            {{- if eq .target (include "skald.pushTarget" $root) }}
            {{- with get (fromYaml (include "skald.syslogPorts" $root)) "ports" }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
            {{- end }}
          {{- if or (include "skald.secretName" $root) (include "skald.redisSecretName" $root) $global.extraEnvFrom $values.extraEnvFrom }}
          envFrom:
            {{- if include "skald.secretName" $root }}
            - secretRef:
                name: {{ include "skald.secretName" $root }}
            {{- end }}
            {{- if include "skald.redisSecretName" $root }}
            - secretRef:
                name: {{ include "skald.redisSecretName" $root }}
            {{- end }}
            {{- with concat $global.extraEnvFrom $values.extraEnvFrom }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- end }}
          env:
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            {{- if $isIngester }}
            - name: SKALD_DATA_FOLDER
              value: {{ $loki.commonConfig.path_prefix }}
            {{- end }}
            {{- with concat $global.extraEnv $values.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- if $isIngester }}
          # A pod that will not come back first uploads what is only on its disk.
          lifecycle:
            preStop:
              exec:
                command: [/nodejs/bin/node, /app/prepare-shutdown.mjs]
          {{- else if .component.sleeps }}
          # Gives clients time to learn that this pod ends.
          lifecycle:
            preStop:
              sleep:
                seconds: 5
          {{- end }}
          startupProbe:
            httpGet:
              path: /services
              port: http
            periodSeconds: 2
            failureThreshold: 300
          readinessProbe:
            httpGet:
              path: /ready
              port: http
            periodSeconds: 5
            timeoutSeconds: 3
          livenessProbe:
            httpGet:
              path: /services
              port: http
            periodSeconds: 10
            timeoutSeconds: 10
            failureThreshold: 6
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          securityContext:
            {{- toYaml $loki.containerSecurityContext | nindent 12 }}
          volumeMounts:
            - name: data
              mountPath: {{ $loki.commonConfig.path_prefix }}
            - name: config
              mountPath: /etc/skald
            {{- with concat $global.extraVolumeMounts $values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
        {{- with $values.extraContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
        - name: config
          configMap:
            name: {{ include "skald.fullname" $root }}
        {{- if not $keepsDisk }}
        - name: data
          emptyDir:
            sizeLimit: {{ $disk.size }}
        {{- end }}
        {{- with concat $global.extraVolumes $values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  {{- if $keepsDisk }}
  volumeClaimTemplates:
    - metadata:
        name: data
        {{- range $key := list "labels" "annotations" }}
        {{- with get $disk $key }}
        {{ $key }}:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        {{- end }}
      spec:
        accessModes: {{ toYaml (default (list "ReadWriteOnce") $disk.accessModes) | nindent 10 }}
        {{- with $disk.storageClass }}
        storageClassName: {{ . }}
        {{- end }}
        {{- with $disk.volumeAttributesClassName }}
        volumeAttributesClassName: {{ . }}
        {{- end }}
        {{- with $disk.selector }}
        selector:
          {{- toYaml . | nindent 10 }}
        {{- end }}
        resources:
          requests:
            storage: {{ $disk.size }}
    {{- with $values.extraVolumeClaimTemplates }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
{{- end }}

{{/* Its autoscaler: as above. */}}
{{- define "skald.autoscaler" -}}
{{- $scaling := .values.autoscaling }}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ .name }}
  labels:
    {{- include "skald.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .target }}
spec:
  scaleTargetRef:
    apiVersion: apps/v1
    kind: {{ ternary "StatefulSet" "Deployment" (default false .component.isSet) }}
    name: {{ .name }}
  minReplicas: {{ $scaling.minReplicas }}
  maxReplicas: {{ $scaling.maxReplicas }}
  metrics:
    {{- if $scaling.targetCPUUtilizationPercentage }}
    - type: Resource
      resource:
        name: cpu
        target:
          type: Utilization
          averageUtilization: {{ $scaling.targetCPUUtilizationPercentage }}
    {{- end }}
    {{- if $scaling.targetMemoryUtilizationPercentage }}
    - type: Resource
      resource:
        name: memory
        target:
          type: Utilization
          averageUtilization: {{ $scaling.targetMemoryUtilizationPercentage }}
    {{- end }}
    {{- with $scaling.customMetrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with omit (default dict $scaling.behavior) "enabled" }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
