/**
 * Keys that the documentation of Loki's chart (version of August 2026, and some of earlier ones) has values for, by the path of the map
 * that they are in; "" is the top.
 */
export const lokiKeys: Readonly<Record<string, string>> = {
  "": `adminApi backend bloomBuilder bloomCompactor bloomGateway bloomPlanner chunksCache
     clusterLabelOverride commonLabels compactor deploymentMode distributor enterprise
     enterpriseGateway extraObjects fullnameOverride gateway global imagePullSecrets indexGateway
     ingester ingress kubeVersionOverride kubectlImage loki lokiCanary memberlist memcached
     memcachedExporter migrate minio monitoring nameOverride namespaceOverride networkPolicy
     overridesExporter patternIngester querier queryFrontend queryScheduler rbac read
     resultsCache rollout_operator ruler serviceAccount sidecar singleBinary tableManager test ui write`,
  global: `imageRegistry image priorityClassName clusterDomain dnsService dnsNamespace extraArgs
     extraEnv extraEnvFrom extraVolumes extraVolumeMounts`,
  "global.image": "registry",
  commonLabels: ``,
  loki: `livenessProbe readinessProbe startupProbe image annotations podAnnotations podLabels
     serviceAnnotations serviceLabels revisionHistoryLimit podSecurityContext
     containerSecurityContext enableServiceLinks dnsConfig configStorageType configObjectName
     generatedConfigObjectName config auth_enabled memberlistConfig extraMemberlistConfig tenants
     server service limits_config runtimeConfig commonConfig storage schemaConfig useTestSchema
     testSchemaConfig rulerConfig structuredConfig query_scheduler storage_config compactor
     compactor_grpc_client pattern_ingester analytics ui query_range querier ingester
     ingester_client block_builder index_gateway frontend frontend_worker distributor tracing
     bloom_build bloom_gateway operational_config`,
  "loki.image": "registry repository tag digest pullPolicy",
  "loki.service": "trafficDistribution",
  "loki.commonConfig": "path_prefix replication_factor compactor_grpc_address compactor_address",
  "loki.storage": "type s3 gcs azure swift filesystem use_thanos_objstore object_store bucketNames",
  "loki.storage.s3": `s3 endpoint region secretAccessKey accessKeyId signatureVersion s3ForcePathStyle insecure
     http_config backoff_config disable_dualstack`,
  "loki.storage.filesystem": "chunks_directory rules_directory admin_api_directory",
  "loki.storage.object_store": "type storage_prefix s3 gcs azure",
  "loki.pattern_ingester": "enabled",
  enterprise: `enabled version cluster_name license useExternalLicense externalLicenseName
     externalConfigName gelGateway adminApi config image adminToken canarySecret provisioner`,
  test: "enabled canaryServiceAddress prometheusAddress timeout labels annotations image hostUsers",
  lokiCanary: `enabled kind push lokiurl labelname annotations podLabels service extraArgs extraEnv
     extraEnvFrom extraVolumeMounts extraVolumes resources dnsConfig nodeSelector tolerations
     affinity priorityClassName hostUsers image livenessProbe readinessProbe startupProbe
     updateStrategy replicas`,
  serviceAccount: "create name imagePullSecrets annotations labels automountServiceAccountToken",
  rbac: "pspEnabled sccEnabled sccAllowHostDirVolumePlugin pspAnnotations namespaced",
  networkPolicy: `enabled flavor metrics ingress alertmanager externalStorage discovery egressWorld
     egressKubeApiserver`,
  "networkPolicy.metrics": "podSelector namespaceSelector cidrs",
  "networkPolicy.ingress": "podSelector namespaceSelector",
  "networkPolicy.alertmanager": "port podSelector namespaceSelector",
  "networkPolicy.externalStorage": "ports cidrs",
  "networkPolicy.discovery": "port podSelector namespaceSelector",
  "networkPolicy.egressWorld": "enabled",
  "networkPolicy.egressKubeApiserver": "enabled",
  memberlist: "service",
  adminApi: `replicas hostAliases extraArgs extraEnv extraEnvFrom labels annotations dnsConfig service
     podSecurityContext containerSecurityContext strategy livenessProbe readinessProbe
     startupProbe resources env initContainers extraContainers extraVolumes extraVolumeMounts
     affinity nodeSelector topologySpreadConstraints tolerations terminationGracePeriodSeconds
     hostUsers`,
  gateway: `enabled replicas containerPort verboseLogging autoscaling deploymentStrategy image
     priorityClassName annotations podAnnotations podLabels extraArgs extraEnv extraEnvFrom
     lifecycle extraVolumes extraVolumeMounts podSecurityContext containerSecurityContext
     hostUsers resources extraContainers terminationGracePeriodSeconds affinity dnsConfig
     nodeSelector topologySpreadConstraints tolerations service ingress basicAuth livenessProbe
     readinessProbe startupProbe nginxConfig`,
  "gateway.autoscaling": `enabled minReplicas maxReplicas targetCPUUtilizationPercentage
     targetMemoryUtilizationPercentage behavior`,
  "gateway.image": "registry repository tag digest pullPolicy",
  "gateway.service":
    "port type clusterIP nodePort loadBalancerIP annotations labels trafficDistribution",
  "gateway.ingress": "enabled ingressClassName annotations labels hosts tls",
  "gateway.basicAuth": "enabled username password htpasswd existingSecret",
  "gateway.nginxConfig": `schema enableIPv6 logFormat serverSnippet httpSnippet locationSnippet clientMaxBodySize ssl
     customReadUrl customWriteUrl customBackendUrl resolver file`,
  enterpriseGateway: `replicas hostAliases hostUsers extraArgs extraEnvFrom labels annotations service
     podSecurityContext containerSecurityContext useDefaultProxyURLs strategy livenessProbe
     readinessProbe startupProbe resources env initContainers extraContainers extraVolumes
     extraVolumeMounts affinity nodeSelector topologySpreadConstraints tolerations
     terminationGracePeriodSeconds`,
  ingress: "enabled ingressClassName annotations labels paths hosts tls",
  migrate: "fromDistributed",
  singleBinary: `replicas autoscaling image priorityClassName annotations podAnnotations podLabels
     selectorLabels service targetModule extraArgs extraEnv extraEnvFrom extraContainers
     initContainers extraVolumeMounts extraVolumes resources terminationGracePeriodSeconds
     hostUsers affinity topologySpreadConstraints dnsConfig nodeSelector tolerations persistence`,
  "singleBinary.autoscaling": `enabled minReplicas maxReplicas targetCPUUtilizationPercentage
     targetMemoryUtilizationPercentage`,
  "singleBinary.image": "registry repository tag",
  "singleBinary.service": "annotations labels type trafficDistribution",
  "singleBinary.persistence": `whenScaled whenDeleted enableStatefulSetAutoDeletePVC
     enableStatefulSetRecreationForSizeChange enabled accessModes size storageClass selector
     annotations labels`,
  write: `replicas autoscaling image priorityClassName annotations podAnnotations podLabels
     selectorLabels service targetModule extraArgs extraEnv extraEnvFrom lifecycle initContainers
     extraContainers extraVolumeMounts extraVolumes extraVolumeClaimTemplates resources
     terminationGracePeriodSeconds hostUsers affinity dnsConfig maxUnavailable nodeSelector
     topologySpreadConstraints tolerations podManagementPolicy persistence`,
  "write.autoscaling": `enabled minReplicas maxReplicas targetCPUUtilizationPercentage
     targetMemoryUtilizationPercentage behavior`,
  "write.image": "registry repository tag",
  "write.service": "annotations labels type trafficDistribution",
  "write.persistence": `volumeClaimsEnabled accessModes dataVolumeParameters enableStatefulSetAutoDeletePVC size
     storageClass volumeAttributesClassName selector annotations labels`,
  read: `replicas autoscaling image priorityClassName annotations podAnnotations podLabels
     selectorLabels service targetModule legacyReadTarget extraArgs initContainers
     extraContainers extraEnv extraEnvFrom lifecycle extraVolumeMounts extraVolumes resources
     livenessProbe startupProbe terminationGracePeriodSeconds hostUsers affinity dnsConfig
     maxUnavailable nodeSelector topologySpreadConstraints tolerations podManagementPolicy
     persistence`,
  "read.autoscaling": `enabled minReplicas maxReplicas targetCPUUtilizationPercentage
     targetMemoryUtilizationPercentage behavior`,
  "read.image": "registry repository tag",
  "read.service": "annotations labels type trafficDistribution",
  "read.persistence": `enableStatefulSetAutoDeletePVC accessModes size storageClass volumeAttributesClassName
     selector annotations labels`,
  backend: `replicas autoscaling image priorityClassName annotations podAnnotations podLabels
     selectorLabels service targetModule extraArgs extraEnv extraEnvFrom initContainers
     extraContainers extraVolumeMounts extraVolumes resources terminationGracePeriodSeconds
     hostUsers affinity dnsConfig maxUnavailable nodeSelector topologySpreadConstraints
     tolerations podManagementPolicy persistence`,
  "backend.autoscaling": `enabled minReplicas maxReplicas targetCPUUtilizationPercentage
     targetMemoryUtilizationPercentage behavior`,
  "backend.image": "registry repository tag",
  "backend.service": "annotations labels type trafficDistribution",
  "backend.persistence": `volumeClaimsEnabled accessModes dataVolumeParameters enableStatefulSetAutoDeletePVC size
     storageClass volumeAttributesClassName selector annotations labels`,
  ingester: `replicas dnsConfig hostAliases hostUsers autoscaling image command labels priorityClassName
     podLabels podAnnotations serviceLabels serviceAnnotations serviceType extraArgs extraEnv
     extraEnvFrom extraVolumeMounts extraVolumes resources extraContainers initContainers
     terminationGracePeriodSeconds lifecycle topologySpreadConstraints affinity maxUnavailable
     nodeSelector tolerations readinessProbe livenessProbe startupProbe updateStrategy
     persistence appProtocol trafficDistribution zoneAwareReplication rolloutGroupPrefix
     addIngesterNamePrefix`,
  "ingester.autoscaling": `enabled minReplicas maxReplicas targetCPUUtilizationPercentage
     targetMemoryUtilizationPercentage customMetrics behavior`,
  "ingester.image": "registry repository tag",
  "ingester.persistence":
    "enabled inMemory claims enableStatefulSetAutoDeletePVC whenDeleted whenScaled",
  "ingester.appProtocol": "grpc",
  "ingester.zoneAwareReplication": "enabled maxUnavailablePct zoneA zoneB zoneC migration",
  distributor: `replicas hostAliases hostUsers dnsConfig autoscaling image command priorityClassName
     podLabels podAnnotations serviceLabels serviceAnnotations serviceType extraArgs extraEnv
     extraEnvFrom extraVolumeMounts extraVolumes resources initContainers extraContainers
     terminationGracePeriodSeconds affinity maxUnavailable maxSurge nodeSelector
     topologySpreadConstraints tolerations appProtocol trafficDistribution`,
  "distributor.autoscaling": `enabled minReplicas maxReplicas targetCPUUtilizationPercentage
     targetMemoryUtilizationPercentage customMetrics behavior`,
  "distributor.image": "registry repository tag",
  "distributor.appProtocol": "grpc",
  querier: `replicas hostAliases hostUsers autoscaling image command priorityClassName podLabels
     podAnnotations serviceLabels serviceAnnotations serviceType extraArgs extraEnv extraEnvFrom
     extraVolumeMounts extraVolumes resources extraContainers initContainers
     terminationGracePeriodSeconds topologySpreadConstraints affinity maxUnavailable maxSurge
     nodeSelector tolerations dnsConfig appProtocol trafficDistribution`,
  "querier.autoscaling": `enabled minReplicas maxReplicas targetCPUUtilizationPercentage
     targetMemoryUtilizationPercentage customMetrics behavior`,
  "querier.image": "registry repository tag",
  "querier.appProtocol": "grpc",
  queryFrontend: `replicas hostAliases hostUsers autoscaling image command priorityClassName podLabels
     podAnnotations serviceLabels serviceAnnotations serviceType extraArgs extraEnv extraEnvFrom
     extraVolumeMounts extraVolumes resources initContainers extraContainers
     terminationGracePeriodSeconds affinity maxUnavailable nodeSelector topologySpreadConstraints
     tolerations appProtocol loadBalancer trafficDistribution`,
  "queryFrontend.autoscaling": `enabled minReplicas maxReplicas targetCPUUtilizationPercentage
     targetMemoryUtilizationPercentage customMetrics behavior`,
  "queryFrontend.image": "registry repository tag",
  "queryFrontend.appProtocol": "grpc",
  "queryFrontend.loadBalancer": "enabled",
  queryScheduler: `replicas dnsConfig hostAliases hostUsers image priorityClassName podLabels podAnnotations
     serviceLabels serviceAnnotations extraArgs extraEnv extraEnvFrom extraVolumeMounts
     extraVolumes resources initContainers extraContainers terminationGracePeriodSeconds affinity
     maxUnavailable nodeSelector topologySpreadConstraints tolerations appProtocol
     trafficDistribution`,
  "queryScheduler.image": "registry repository tag",
  "queryScheduler.appProtocol": "grpc",
  indexGateway: `replicas joinMemberlist dnsConfig hostAliases hostUsers image priorityClassName podLabels
     podAnnotations serviceLabels serviceAnnotations serviceType extraArgs extraEnv extraEnvFrom
     extraVolumeMounts extraVolumes resources extraContainers initContainers
     terminationGracePeriodSeconds lifecycle affinity maxUnavailable nodeSelector
     topologySpreadConstraints tolerations persistence appProtocol trafficDistribution
     updateStrategy`,
  "indexGateway.image": "registry repository tag",
  "indexGateway.persistence": `enabled accessModes inMemory size storageClass volumeAttributesClassName annotations labels
     enableStatefulSetAutoDeletePVC whenDeleted whenScaled`,
  "indexGateway.appProtocol": "grpc",
  compactor: `replicas hostAliases hostUsers dnsConfig image command priorityClassName podLabels
     podAnnotations affinity serviceLabels serviceAnnotations serviceType extraArgs extraEnv
     extraEnvFrom extraVolumeMounts extraVolumes readinessProbe livenessProbe startupProbe
     resources extraContainers initContainers terminationGracePeriodSeconds nodeSelector
     tolerations appProtocol persistence serviceAccount`,
  "compactor.image": "registry repository tag",
  "compactor.appProtocol": "grpc",
  "compactor.persistence": "enabled claims enableStatefulSetAutoDeletePVC whenDeleted whenScaled",
  "compactor.serviceAccount":
    "create name imagePullSecrets annotations automountServiceAccountToken",
  bloomGateway: `replicas hostAliases hostUsers dnsConfig image command priorityClassName podLabels
     podAnnotations affinity serviceLabels serviceAnnotations extraArgs extraEnv extraEnvFrom
     extraVolumeMounts extraVolumes readinessProbe livenessProbe startupProbe resources
     extraContainers initContainers terminationGracePeriodSeconds nodeSelector tolerations
     appProtocol persistence serviceAccount`,
  bloomPlanner: `replicas hostAliases hostUsers dnsConfig image command priorityClassName podLabels
     podAnnotations affinity serviceLabels serviceAnnotations extraArgs extraEnv extraEnvFrom
     extraVolumeMounts extraVolumes readinessProbe livenessProbe startupProbe resources
     extraContainers initContainers terminationGracePeriodSeconds nodeSelector tolerations
     appProtocol persistence serviceAccount`,
  bloomBuilder: `replicas hostAliases hostUsers dnsConfig autoscaling image command priorityClassName
     podLabels podAnnotations serviceLabels serviceAnnotations extraArgs extraEnv extraEnvFrom
     extraVolumeMounts extraVolumes resources initContainers extraContainers
     terminationGracePeriodSeconds affinity maxUnavailable nodeSelector tolerations appProtocol`,
  patternIngester: `replicas dnsConfig hostAliases hostUsers image command priorityClassName podLabels
     podAnnotations affinity maxUnavailable serviceLabels serviceAnnotations extraArgs extraEnv
     extraEnvFrom extraVolumeMounts extraVolumes readinessProbe livenessProbe startupProbe
     resources extraContainers initContainers terminationGracePeriodSeconds nodeSelector
     topologySpreadConstraints tolerations appProtocol persistence serviceAccount`,
  "patternIngester.image": "registry repository tag",
  "patternIngester.appProtocol": "grpc",
  "patternIngester.persistence":
    "enabled size storageClass claims enableStatefulSetAutoDeletePVC whenDeleted whenScaled",
  "patternIngester.serviceAccount":
    "create name imagePullSecrets annotations automountServiceAccountToken",
  ruler: `enabled sidecar replicas hostAliases hostUsers image command priorityClassName podLabels
     podAnnotations serviceLabels serviceAnnotations extraArgs extraEnv extraEnvFrom
     extraVolumeMounts extraVolumes resources extraContainers initContainers
     terminationGracePeriodSeconds affinity maxUnavailable nodeSelector topologySpreadConstraints
     tolerations dnsConfig persistence appProtocol directories`,
  "ruler.image": "registry repository tag",
  "ruler.persistence":
    "enabled accessModes size storageClass volumeAttributesClassName annotations labels",
  "ruler.appProtocol": "grpc",
  overridesExporter: `enabled replicas dnsConfig hostAliases hostUsers image command priorityClassName podLabels
     podAnnotations serviceLabels serviceAnnotations extraArgs extraEnv extraEnvFrom
     extraVolumeMounts extraVolumes resources extraContainers initContainers
     terminationGracePeriodSeconds affinity maxUnavailable nodeSelector topologySpreadConstraints
     tolerations appProtocol`,
  memcached: `enabled image podSecurityContext priorityClassName containerSecurityContext readinessProbe
     livenessProbe startupProbe replicas`,
  memcachedExporter: `enabled image resources containerSecurityContext extraArgs livenessProbe readinessProbe
     startupProbe`,
  resultsCache: `enabled addresses defaultValidity timeout replicas port allocatedMemory allocatedCPU
     maxItemMemory connectionLimit writebackSizeLimit writebackBuffer writebackParallelism
     initContainers annotations nodeSelector affinity topologySpreadConstraints tolerations
     maxUnavailable dnsConfig priorityClassName hostUsers podLabels podAnnotations
     podManagementPolicy terminationGracePeriodSeconds statefulStrategy extraExtendedOptions
     extraArgs extraContainers extraVolumes extraVolumeMounts resources service persistence`,
  chunksCache: `suffix enabled addresses batchSize parallelism timeout defaultValidity replicas port
     allocatedMemory allocatedCPU maxItemMemory connectionLimit writebackSizeLimit
     writebackBuffer writebackParallelism initContainers annotations nodeSelector affinity
     topologySpreadConstraints tolerations maxUnavailable dnsConfig priorityClassName hostUsers
     podLabels podAnnotations podManagementPolicy terminationGracePeriodSeconds statefulStrategy
     extraExtendedOptions extraArgs extraContainers extraVolumes extraVolumeMounts resources
     service persistence l2`,
  rollout_operator: "enabled podSecurityContext securityContext",
  minio: `enabled image mcImage replicas drivesPerNode rootUser rootPassword users buckets persistence
     resources address`,
  "minio.image": "repository tag pullPolicy",
  "minio.persistence": "size annotations",
  sidecar: `image resources securityContext skipTlsVerify disableX509StrictVerification
     enableUniqueFilenames readinessProbe livenessProbe startupProbe rules`,
  monitoring: "dashboards rules serviceMonitor selfMonitoring lokiCanary enabled",
  "monitoring.dashboards": "enabled namespace annotations labels",
  "monitoring.rules": `enabled alerting disabled configs namespace annotations labels additionalRuleAnnotations
     additionalRuleLabels additionalGroups`,
  "monitoring.serviceMonitor": `enabled namespaceSelector annotations labels interval scrapeTimeout relabelings
     metricRelabelings scheme tlsConfig metricsInstance`,
  "monitoring.selfMonitoring": "enabled tenant grafanaAgent podLogs logsInstance",
  tableManager: `enabled image command priorityClassName podLabels annotations podAnnotations service
     extraArgs extraEnv extraEnvFrom extraVolumeMounts extraVolumes resources extraContainers
     terminationGracePeriodSeconds hostUsers affinity dnsConfig nodeSelector tolerations
     retention_deletes_enabled retention_period`,
  "loki.storage.bucketNames": "chunks ruler admin",
};

/** Values as the documentation of Loki's chart and the files beside it have them. */
export const lokiExamples: Readonly<Record<string, string>> = {
  "one process on its disk": `
deploymentMode: SingleBinary
loki:
  auth_enabled: false
  commonConfig: { replication_factor: 1 }
  storage: { type: filesystem }
  useTestSchema: true
singleBinary: { replicas: 1 }
write: { replicas: 0 }
read: { replicas: 0 }
backend: { replicas: 0 }
chunksCache: { enabled: false }
resultsCache: { enabled: false }
lokiCanary: { enabled: false }
test: { enabled: false }
`,
  "several copies of one process": `
deploymentMode: SingleBinary
loki:
  commonConfig: { replication_factor: 3 }
  schemaConfig:
    configs:
      - { from: "2024-04-01", store: tsdb, object_store: s3, schema: v13, index: { prefix: loki_index_, period: 24h } }
  limits_config: { allow_structured_metadata: true, volume_enabled: true }
  ruler: { enable_api: true }
  storage: { bucketNames: { chunks: logs }, s3: { endpoint: https://s3.example, accessKeyId: a, secretAccessKey: b } }
singleBinary: { replicas: 3, autoscaling: { enabled: true, maxReplicas: 5 }, persistence: { whenDeleted: Delete, accessModes: [ReadWriteOnce] } }
`,
  "processes that write, read and do the rest, with MinIO": `
deploymentMode: SimpleScalable
commonLabels: { team: logs }
loki:
  schemaConfig:
    configs:
      - { from: "2024-04-01", store: tsdb, object_store: s3, schema: v13, index: { prefix: loki_index_, period: 24h } }
  tracing: { enabled: true }
  commonConfig: { compactor_grpc_address: '{{ include "loki.compactorAddress" . }}' }
backend: { replicas: 3 }
read: { replicas: 3, legacyReadTarget: false }
write: { replicas: 3, persistence: { volumeClaimsEnabled: true, size: 10Gi } }
minio: { enabled: true, rootUser: root, rootPassword: supersecret, drivesPerNode: 2, persistence: { size: 5Gi } }
gateway: { service: { type: LoadBalancer } }
bloomCompactor: { replicas: 0 }
`,
  "a cluster with MinIO, users and canary": `
deploymentMode: Distributed
commonLabels: { team: logs }
test: { enabled: true }
loki:
  useTestSchema: true
  commonConfig: { replication_factor: 1 }
  dnsConfig: { options: [{ name: ndots, value: "3" }] }
  tenants: [{ name: shop, password: hush }, { name: web, passwordHash: $2y$10$abc }]
minio: { enabled: true }
lokiCanary: { enabled: true, kind: Deployment }
ingester:
  replicas: 3
  zoneAwareReplication: { enabled: true }
  persistence: { enabled: true, claims: [{ name: data, size: 30Gi, storageClass: fast }] }
querier: { replicas: 3, maxUnavailable: 2, hostAliases: [{ ip: 10.0.0.1, hostnames: [s3] }] }
queryFrontend: { replicas: 2, autoscaling: { enabled: true, maxReplicas: 4 } }
distributor: { replicas: 2, maxSurge: 2, initContainers: [] }
compactor: { replicas: 1, serviceAccount: { create: true } }
ruler: { enabled: false }
gateway: { basicAuth: { enabled: true }, nginxConfig: { enableIPv6: false } }
memcached: { enabled: true }
chunksCache: { enabled: true, l2: { enabled: true } }
`,
  "a bucket of AWS by the account of the pods": `
deploymentMode: SimpleScalable
loki:
  storage:
    type: s3
    bucketNames: { chunks: logs-chunks, ruler: logs-ruler, admin: logs-admin }
    s3: { region: eu-central-1 }
enterprise: { enabled: true, adminToken: { secret: token } }
serviceAccount: { annotations: { eks.amazonaws.com/role-arn: "arn:aws:iam::1:role/logs" } }
write: { persistence: { storageClass: gp2 } }
read: { persistence: { storageClass: gp2 } }
backend: { persistence: { storageClass: gp2 } }
`,
  "a bucket by the words of Thanos": `
deploymentMode: SimpleScalable
loki:
  useTestSchema: true
  commonConfig: { replication_factor: 1 }
  storage:
    use_thanos_objstore: true
    bucketNames: { chunks: logs }
    object_store:
      type: s3
      s3: { endpoint: minio.example:9000, region: eu, access_key_id: a, secret_access_key: b, insecure: true, http: {} }
      gcs: { bucket_name: x }
minio: { enabled: true }
`,
  "an ingress with users before one process": `
deploymentMode: SingleBinary
gateway:
  basicAuth: { enabled: true, username: agent, password: hush }
  ingress: { enabled: true, hosts: [{ host: logs.example, paths: [{ path: /, pathType: Prefix }] }] }
monitoring: { selfMonitoring: { enabled: false }, lokiCanary: { enabled: false }, serviceMonitor: { enabled: true, scrapeTimeout: 5s } }
extraObjects: [{ apiVersion: v1, kind: ConfigMap, metadata: { name: more }, data: { a: b } }]
`,
  SingleBinary: `
loki:
  commonConfig: { replication_factor: 1 }
  schemaConfig:
    configs:
      - { from: "2024-04-01", store: tsdb, object_store: s3, schema: v13, index: { prefix: loki_index_, period: 24h } }
  pattern_ingester: { enabled: true }
  limits_config: { allow_structured_metadata: true, volume_enabled: true, retention_period: 672h }
  ruler: { enable_api: true }
minio: { enabled: true }
deploymentMode: SingleBinary
singleBinary: { replicas: 1 }
backend: { replicas: 0 }
read: { replicas: 0 }
write: { replicas: 0 }
ingester: { replicas: 0 }
querier: { replicas: 0 }
queryFrontend: { replicas: 0 }
queryScheduler: { replicas: 0 }
distributor: { replicas: 0 }
compactor: { replicas: 0 }
indexGateway: { replicas: 0 }
bloomPlanner: { replicas: 0 }
bloomBuilder: { replicas: 0 }
bloomGateway: { replicas: 0 }
`,
  SimpleScalable: `
loki:
  schemaConfig:
    configs:
      - { from: "2024-04-01", store: tsdb, object_store: s3, schema: v13, index: { prefix: loki_index_, period: 24h } }
  ingester: { chunk_encoding: snappy }
  querier: { max_concurrent: 4 }
  pattern_ingester: { enabled: true }
  limits_config: { allow_structured_metadata: true, volume_enabled: true }
  storage:
    type: s3
    bucketNames: { chunks: chunks, ruler: ruler, admin: admin }
    s3: { endpoint: null, region: eu-central-1, accessKeyId: a, secretAccessKey: b, s3ForcePathStyle: false, insecure: false, http_config: {} }
deploymentMode: SimpleScalable
backend: { replicas: 3, maxUnavailable: 2 }
read: { replicas: 3 }
write: { replicas: 3 }
minio: { enabled: false }
chunksCache: { allocatedMemory: 2048 }
gateway: { service: { type: LoadBalancer }, basicAuth: { enabled: false } }
`,
  Distributed: `
loki:
  schemaConfig:
    configs:
      - { from: "2024-04-01", store: tsdb, object_store: s3, schema: v13, index: { prefix: loki_index_, period: 24h } }
  ingester: { chunk_encoding: snappy }
  querier: { max_concurrent: 4 }
  pattern_ingester: { enabled: true }
  storage_config: { aws: { region: eu-central-1, bucketnames: chunks, s3forcepathstyle: false } }
  compactor: { retention_enabled: true, delete_request_store: s3 }
  storage: { type: s3, bucketNames: { chunks: chunks, ruler: chunks, admin: chunks }, s3: { region: eu-central-1 } }
deploymentMode: Distributed
ingester: { replicas: 4, zoneAwareReplication: { enabled: false } }
querier: { replicas: 3, maxUnavailable: 2 }
queryFrontend: { replicas: 2, maxUnavailable: 1 }
queryScheduler: { replicas: 2 }
distributor: { replicas: 3, maxUnavailable: 2 }
compactor: { replicas: 1 }
indexGateway: { replicas: 2, maxUnavailable: 1 }
patternIngester: { replicas: 1 }
ruler: { replicas: 1, maxUnavailable: 1 }
bloomPlanner: { replicas: 0 }
bloomBuilder: { replicas: 0 }
bloomGateway: { replicas: 0 }
backend: { replicas: 0 }
read: { replicas: 0 }
write: { replicas: 0 }
singleBinary: { replicas: 0 }
memberlist: { service: { publishNotReadyAddresses: true } }
resultsCache: { enabled: false }
`,
};
