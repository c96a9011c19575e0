/**
 * The scripts of the program's threads. Only this file names them: in the bundle its code stands beside these scripts as it
 * does here, while the code of folders is moved.
 */
export const threadScripts = {
  jobs: new URL("./worker.js", import.meta.url),
  queries: new URL("./query/query-worker.js", import.meta.url),
  patterns: new URL("./patterns-worker.js", import.meta.url),
  bucket: new URL("./bucket-worker.js", import.meta.url),
  syslog: new URL("./syslog-worker.js", import.meta.url),
};
