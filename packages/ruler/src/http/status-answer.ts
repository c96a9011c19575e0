import { SkaldError, textForClients } from "@skald/model";
import { type HttpHandler, type HttpResponse, jsonTextResponse } from "@skald/transport";

/** An answer in the form of Prometheus, with signs that mean something in HTML escaped. */
export function statusAnswer(
  status: number,
  data: unknown,
  warnings: readonly string[] = [],
): HttpResponse {
  const told = warnings.length === 0 ? {} : { warnings };
  return jsonTextResponse(
    status,
    escapeHtml({ status: "success", data, errorType: "", error: "", ...told }),
  );
}

/** Tells errors in that form; those of authentication stay as they are everywhere. */
export function withStatusErrors(handler: HttpHandler): HttpHandler {
  return async (request) => {
    try {
      return await handler(request);
    } catch (error) {
      if (
        !(error instanceof SkaldError) ||
        error.code === "unauthenticated" ||
        error.status === 500
      )
        throw error;
      const errorType = error.status < 500 ? "bad_data" : "server_error";
      const told = { status: "error", data: null, errorType, error: textForClients(error) };
      return jsonTextResponse(error.status, escapeHtml(told));
    }
  };
}

function escapeHtml(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
