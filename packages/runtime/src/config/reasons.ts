// Why keys have no effect, where several sections say the same.

export const noRing = "this version runs in one process and needs no ring";
export const redisOnly =
  "rings of several processes are kept in Redis: set store: redis and redis.endpoint";
export const oneProcess = "this version runs in one process and makes no calls between services";
export const oneCopy = "replicas cut when they do, and agree by what they hold";
export const notBuilt = "only filesystem and s3 are built into this version";
export const experiment = "is an experiment that Skald does not take part in";
export const gone = "has no meaning any more";
