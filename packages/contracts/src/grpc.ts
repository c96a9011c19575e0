export { remoteIngester, serveIngester } from "./carrier/ingester.js";
export * from "./carrier/services.js";
