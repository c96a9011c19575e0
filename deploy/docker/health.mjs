// Exits with 0 when the process of this container is ready: the image has no shell and no curl. SKALD_READY_URL names another address.
const url = process.env.SKALD_READY_URL ?? "http://127.0.0.1:3100/ready";
try {
  const { ok } = await fetch(url, { signal: AbortSignal.timeout(8_000) });
  process.exit(ok ? 0 : 1);
} catch {
  process.exit(1);
}
