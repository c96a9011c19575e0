import { patternJobs } from "@skald/patterns";
import { serveJobs } from "@skald/runtime";

// The thread that finds patterns.
serveJobs(patternJobs());
