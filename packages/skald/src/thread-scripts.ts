/**
 * What the threads of the program run. Named here and nowhere else: in the bundle this file's code stands beside these
 * scripts as it does here, while code of a folder does not stay in it.
 */
export const threadScripts = {
  jobs: new URL("./worker.js", import.meta.url),
  queries: new URL("./query/query-worker.js", import.meta.url),
  patterns: new URL("./patterns-worker.js", import.meta.url),
  bucket: new URL("./bucket-worker.js", import.meta.url),
};
