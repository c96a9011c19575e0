export { type PatternSetup, patternJobs } from "./jobs.js";
export { LineSampler, type LineSamplerOptions } from "./line-sampler.js";
export { mergePatterns } from "./merge-patterns.js";
export { fieldNeedles, messageOf } from "./message.js";
export { Miner } from "./miner.js";
export { type PatternOptions, PatternStore } from "./pattern-store.js";
export { PatternThread } from "./pattern-thread.js";
