export * from "./body.js";
export * from "./http.js";
export * from "./http-server.js";
export * from "./tenant.js";
