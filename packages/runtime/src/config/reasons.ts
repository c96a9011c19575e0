// Why keys have no effect, where several sections say the same.

export const redisOnly =
  "rings of several processes are kept in Redis: set store: redis and redis.endpoint";
export const noCalls = "nothing is called in this way";
export const byScheduler = "frontends and queriers meet at query schedulers";
export const oneCopy = "replicas cut when they do, and agree by what they hold";
export const notBuilt = "only filesystem and s3 are built into this version";
export const experiment = "is an experiment that Skald does not take part in";
export const gone = "has no meaning any more";
export const ownStreams =
  "an ingester counts the streams that it has, whoever has them by the ring";
