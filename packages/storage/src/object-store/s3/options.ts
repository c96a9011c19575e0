/** Which bucket, how it is reached, and how patiently. */
export interface S3Options {
  readonly bucket: string;
  /** The folder of all keys, with a slash at its end; without it they are in the root of the bucket. */
  readonly folder?: string;
  /** A URL; the region's own host when absent. */
  readonly endpoint?: string;
  readonly region: string;
  /** Without them the chain of the AWS tools is asked: environment, files, web identity, the machine's role. */
  readonly credentials?: S3Credentials | undefined;
  /** The bucket in the path instead of the host name. */
  readonly pathStyle?: boolean;
  /** IPv6 too. */
  readonly dualstack?: boolean;
  /** Certificates of authorities, PEM; those of Node when absent. */
  readonly ca?: string;
  /** Takes any certificate. */
  readonly insecureSkipVerify?: boolean;
  /** Idle connections end after this, ms. */
  readonly idleTimeoutMs?: number;
  /** Of one try, ms: for the headers of its answer, and for all of it; 0 for what its size allows. */
  readonly headerTimeoutMs?: number;
  readonly tryTimeoutMs?: number;
  readonly retry?: S3Retry;
  readonly encryption?: S3Encryption | undefined;
  readonly storageClass?: string;
  /** Told of each try when it has ended. */
  readonly onTry?: (report: S3Try) => void;
}

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface S3Retry {
  readonly minBackoffMs: number;
  readonly maxBackoffMs: number;
  /** Tries after the first. */
  readonly maxRetries: number;
}

/** Encryption by the store: with its own keys, or with one that a service keeps. */
export type S3Encryption =
  | { readonly kind: "SSE-S3" }
  | { readonly kind: "SSE-KMS"; readonly keyId?: string; readonly context?: string };

export const defaultRetry: S3Retry = { minBackoffMs: 100, maxBackoffMs: 3000, maxRetries: 5 };

/** What is asked of the store, by the names that dashboards know. */
export type S3Operation =
  | "get"
  | "get_range"
  | "attributes"
  | "upload"
  | "upload_part"
  | "upload_start"
  | "upload_end"
  | "upload_abort"
  | "iter"
  | "delete";

export interface S3Try {
  readonly operation: S3Operation;
  readonly seconds: number;
  /** Of the answer; 0 when there was none. */
  readonly status: number;
  /** What was asked for is there, or is known not to be. */
  readonly failed: boolean;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}
