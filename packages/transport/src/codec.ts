// The face "@skald/transport/codec": what worker threads need, without the HTTP server and its router.
export * from "./codec-push.js";
export * from "./codec-push-batch.js";
