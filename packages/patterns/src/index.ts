export { LineSampler } from "./line-sampler.js";
export { Miner } from "./miner.js";
export { type ErasedRows, mergePatterns } from "./pattern-store.js";
export { type PatternSetup, PatternThread, patternJobs } from "./pattern-thread.js";
export { fieldNeedles, messageOf } from "./tokenize.js";
