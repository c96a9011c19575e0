import { readFile } from "node:fs/promises";
import { tooLarge, unavailable } from "@skald/model";
import { deadline } from "../async/deadline.js";

const maxBytes = 16 * 2 ** 20;
const timeoutMs = 10_000;

/** The text of a file, or of what an http(s) address answers within 10 seconds; 16 MiB at most. */
export async function readLocation(location: string, signal?: AbortSignal): Promise<string> {
  if (/^https?:\/\//.test(location)) return fetchText(location, signal);
  const bytes = await readFile(location, signal === undefined ? {} : { signal });
  if (bytes.length > maxBytes) throw tooLarge(`${location} is larger than ${maxBytes} bytes`);
  return bytes.toString("utf8");
}

async function fetchText(address: string, signal: AbortSignal | undefined): Promise<string> {
  const message = `${address} did not answer within ${timeoutMs} ms`;
  const limit = deadline({ timeoutMs, message, ...(signal && { signal }) });
  try {
    const response = await fetch(address, { signal: limit.signal });
    if (!response.ok) throw unavailable(`${address} answered ${response.status}`);
    const chunks: Uint8Array[] = [];
    let sizeBytes = 0;
    for await (const chunk of response.body ?? []) {
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) throw tooLarge(`${address} is larger than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  } finally {
    limit.clear();
  }
}
