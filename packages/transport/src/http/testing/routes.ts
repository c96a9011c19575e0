import { endResponse } from "../answer.js";
import { readBody } from "../body.js";
import type { RawHandler } from "../http-server.js";
import { jsonResponse, type Route } from "../route.js";

/** Answers with what was asked. */
export const echo: Route = {
  methods: ["GET", "POST"],
  path: "/api/echo",
  handler: ({ method, path, params, body }) =>
    jsonResponse(200, { method, path, params: [...params], body: Buffer.from(body).toString() }),
};

/** Headers of a form. */
export const form = { "content-type": "application/x-www-form-urlencoded; charset=utf-8" };

/** Answers with what was pushed. */
export const push: RawHandler = async (request, response) => {
  const body = await readBody(request, 1000);
  endResponse(response, Buffer.from(`pushed ${body.length}`));
};

/** Sends a request; gives the whole answer. */
export async function ask(
  url: string,
  init: RequestInit = {},
): Promise<Pick<Response, "status" | "headers"> & { readonly text: string }> {
  const response = await fetch(url, init);
  return { status: response.status, headers: response.headers, text: await response.text() };
}
