import { type Agent, request as startRequest } from "node:http";
import type { HostileRequest } from "./hostile-requests.js";

export interface HostileAnswer {
  readonly status: number;
  readonly allow: string | undefined;
  readonly text: string;
}

/** Sends a request as it is, and resolves with the whole answer. */
export function sendHostile(
  { method, url, headers, body }: Pick<HostileRequest, "method" | "url" | "headers" | "body">,
  { agent, port }: { readonly agent: Agent; readonly port: number },
): Promise<HostileAnswer> {
  return new Promise((resolve, reject) => {
    const path = url.replace(/[^!-~]/g, encodeURIComponent);
    const { expect: _, ...plain } = headers;
    const known = Object.fromEntries(
      Object.entries(plain).map(([name, value]) => [name, latin1(value)]),
    );
    const length = body === undefined ? {} : { "content-length": body.length };
    const maxHeaderSize = 1024 * 1024;
    const options = {
      agent,
      maxHeaderSize,
      method,
      path,
      port,
      headers: { ...known, ...length },
    };
    const request = startRequest(options, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          allow: response.headers.allow,
          text: Buffer.concat(pieces).toString(),
        }),
      );
    });
    request.on("error", (error) => reject(new Error(`${method} ${path}`, { cause: error })));
    request.end(body);
  });
}

/** Header values that a client can send at all. */
function latin1(value: string): string {
  return value.replace(/[^\t -~\u0080-\u00ff]/g, "?");
}
