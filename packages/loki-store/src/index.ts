export { bucketFiles, directoryFiles, type LokiFiles } from "./files.js";
export { importLokiStore, type LokiImportProgress } from "./import.js";
export type { ImportJob } from "./jobs.js";
