import type { ServerResponse } from "node:http";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { SkaldError } from "@skald/model";
import { endResponse } from "./end-response.js";
import { type HttpResponse, textResponse } from "./types.js";

/** Answers smaller than this are not worth compressing. */
const minCompressBytes = 1400;
const compress = promisify(gzip);

/** Writes an answer, compressed where the client takes that. Does nothing when the client has left. */
export async function sendAnswer(
  options: { readonly compressResponses: boolean },
  response: ServerResponse,
  answer: HttpResponse,
): Promise<void> {
  if (response.destroyed) return;
  let body = typeof answer.body === "string" ? Buffer.from(answer.body) : answer.body;
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
  if (options.compressResponses && body !== undefined && body.length >= minCompressBytes) {
    response.setHeader("vary", "Accept-Encoding");
    if (wantsGzip(response.req.headers["accept-encoding"])) {
      body = await compress(body, { level: 1 });
      response.setHeader("content-encoding", "gzip");
    }
  }
  response.statusCode = answer.status;
  endResponse(response, body);
}

/** Query errors are plain text without a line feed, those of authentication have one; 5xx say what failed. */
export function errorAnswer(error: unknown): HttpResponse {
  if (!(error instanceof SkaldError))
    return textResponse(500, error instanceof Error ? error.message : String(error));
  const end = error.code === "unauthenticated" ? "\n" : "";
  return textResponse(error.status, error.message + end);
}

/** Whether an Accept-Encoding header takes gzip: by name or by `*`, and not with a weight of zero. */
export function wantsGzip(header: string | string[] | undefined): boolean {
  const weights = new Map<string, number>();
  for (const part of String(header ?? "").split(",")) {
    const [name = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    const weight = parameters.find((text) => text.startsWith("q="))?.slice(2);
    weights.set(name, weight === undefined ? 1 : Number(weight));
  }
  return (weights.get("gzip") ?? weights.get("*") ?? 0) > 0;
}
