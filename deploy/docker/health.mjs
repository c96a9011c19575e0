// Exits with 0 when the process of the container is ready, because the image has no curl. SKALD_READY_URL sets the address.
const url = process.env.SKALD_READY_URL ?? "http://127.0.0.1:3100/ready";
try {
  const { ok } = await fetch(url, { signal: AbortSignal.timeout(8_000) });
  process.exit(ok ? 0 : 1);
} catch {
  process.exit(1);
}
