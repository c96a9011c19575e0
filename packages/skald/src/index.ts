export { type Endpoint, everyTarget, wholeApi } from "./process/process.js";
