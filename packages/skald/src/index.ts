export type { Endpoint } from "./http/api.js";
export { everyTarget, wholeApi } from "./process/whole-api.js";
