import type { Page } from "./buckets.js";

const namespace = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"';

export function errorXml(code: string, key: string): string {
  const message = `the test server says ${code}`;
  return `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message><Resource>${escaped(key)}</Resource></Error>`;
}

export function createXml(bucket: string, key: string, id: string): string {
  return `<?xml version="1.0"?><InitiateMultipartUploadResult ${namespace}><Bucket>${bucket}</Bucket><Key>${escaped(key)}</Key><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`;
}

export function completeXml(bucket: string, key: string, etag: string): string {
  return `<?xml version="1.0"?><CompleteMultipartUploadResult ${namespace}><Bucket>${bucket}</Bucket><Key>${escaped(key)}</Key><ETag>${escaped(etag)}</ETag></CompleteMultipartUploadResult>`;
}

export function listXml(bucket: string, page: Page): string {
  const { objects, prefixes, next, prefix, maxKeys } = page;
  const token =
    next === undefined ? "" : `<NextContinuationToken>${escaped(next)}</NextContinuationToken>`;
  const contents = objects.map(({ key, object }) => {
    const modified = new Date(object.modifiedMs).toISOString();
    const size = object.body.byteLength;
    return `<Contents><Key>${escaped(key)}</Key><LastModified>${modified}</LastModified><ETag>${escaped(object.etag)}</ETag><Size>${size}</Size><StorageClass>STANDARD</StorageClass></Contents>`;
  });
  const common = prefixes.map(
    (name) => `<CommonPrefixes><Prefix>${escaped(name)}</Prefix></CommonPrefixes>`,
  );
  return `<?xml version="1.0"?><ListBucketResult ${namespace}><Name>${bucket}</Name><Prefix>${escaped(prefix)}</Prefix><MaxKeys>${maxKeys}</MaxKeys><KeyCount>${objects.length + prefixes.length}</KeyCount><IsTruncated>${next !== undefined}</IsTruncated>${token}${contents.join("")}${common.join("")}</ListBucketResult>`;
}

/** The texts of all elements of a name. */
export function attribute(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>([^<]*)</${name}>`, "g"))].map(
    ([, text = ""]) => text,
  );
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
