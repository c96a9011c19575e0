export { bucketFiles, directoryFiles, type LokiFiles } from "./files.js";
export { importLokiStore, type LokiImportOptions, type LokiImportProgress } from "./import.js";
export type { ImportedChunks, ImportJob } from "./jobs.js";
