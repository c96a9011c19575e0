export { type PatternSetup, patternJobs } from "./jobs.js";
export { fieldNeedles, messageOf } from "./message.js";
export { Miner } from "./miner.js";
export { type PatternOptions, PatternStore } from "./pattern-store.js";
export { PatternThread } from "./pattern-thread.js";
