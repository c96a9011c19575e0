// Why keys have no effect, where several sections say the same.

export const noRing = "this version runs in one process and needs no ring";
export const oneProcess = "this version runs in one process and makes no calls between services";
export const oneCopy = "this version keeps one copy of each stream";
export const onlyDisk = "this version keeps data on its own disk";
export const experiment = "is an experiment that Skald does not take part in";
export const gone = "has no meaning any more";
