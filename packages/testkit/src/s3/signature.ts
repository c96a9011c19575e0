import type { IncomingHttpHeaders } from "node:http";

const form =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/[^/]+\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=[0-9a-f]{64}$/;

/** The code of the error with which a request is refused; undefined when its signature has the right form and key. */
export function checkSignature(
  headers: IncomingHttpHeaders,
  accessKeyId: string,
  hashOfBody: () => string,
): string | undefined {
  const match = form.exec(headers.authorization ?? "");
  if (match === null) return "AccessDenied";
  const [, key, day, signed = ""] = match;
  if (key !== accessKeyId) return "InvalidAccessKeyId";
  const date = headers["x-amz-date"];
  if (typeof date !== "string" || !/^\d{8}T\d{6}Z$/.test(date) || date.slice(0, 8) !== day)
    return "AuthorizationHeaderMalformed";
  const names = signed.split(";");
  if (!["host", "x-amz-date", "x-amz-content-sha256"].every((name) => names.includes(name)))
    return "AuthorizationHeaderMalformed";
  const hash = headers["x-amz-content-sha256"];
  if (hash === "UNSIGNED-PAYLOAD") return undefined;
  return hash === hashOfBody() ? undefined : "XAmzContentSHA256Mismatch";
}
