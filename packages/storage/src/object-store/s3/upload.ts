import { randomUUID } from "node:crypto";
import type { PutObjectCommandInput } from "@aws-sdk/client-s3";
import { Semaphore } from "@skald/runtime";
import { type FileHandle, open, stat } from "../../files.js";
import { readBody, type S3Calls, S3Failure, type S3Options } from "./calls.js";

const MiB = 1024 * 1024;

/** Larger files are sent in parts, this large or larger: S3 takes no more than 10,000 of them. */
const maxSingleBytes = 16 * MiB;
const usualPartBytes = 8 * MiB;
const maxParts = 10_000;
/** Parts of one file that are under way together. */
const partsTogether = 4;
/** Bodies in memory, read from files and under way, over all uploads: each is at most 16 MiB as a rule. */
const bodiesTogether = 8;

/** The name of the metadata that says which put made an object. */
const nonceName = "skald-put";

export interface Upload {
  readonly key: string;
  readonly signal: AbortSignal;
  /** Only when there is no such object; fails with status 412 when there is. */
  readonly ifAbsent: boolean;
}

/** Puts objects, large files in parts. */
export class Uploads {
  readonly #calls: S3Calls;
  readonly #bucket: string;
  readonly #settings: ObjectSettings;
  readonly #bodies = new Semaphore(bodiesTogether);

  constructor(calls: S3Calls, options: S3Options) {
    this.#calls = calls;
    this.#bucket = options.bucket;
    this.#settings = objectSettings(options);
  }

  /** Puts bytes as one object. */
  async put(upload: Upload, body: Uint8Array): Promise<void> {
    const nonce = randomUUID();
    try {
      await this.#putOnce(upload, body, nonce);
    } catch (error) {
      await this.#unlessOurs(error, upload, { nonce, body });
    }
  }

  /** Puts a file that does not change meanwhile, without holding it in memory when it is large. */
  async putFile(upload: Upload, path: string): Promise<void> {
    const { size } = await stat(path);
    const file = await open(path, "r");
    const nonce = randomUUID();
    try {
      if (size > maxSingleBytes) await this.#putParts(upload, { file, size }, nonce);
      else {
        await this.#bodies.run(async () => {
          const body = await readPart(file, 0, size);
          await this.#putOnce(upload, body, nonce);
        }, upload.signal);
      }
    } catch (error) {
      await this.#unlessOurs(error, upload, { nonce });
    } finally {
      await file.close();
    }
  }

  #putOnce({ key, signal, ifAbsent }: Upload, body: Uint8Array, nonce: string): Promise<void> {
    return this.#calls.run(
      "upload",
      signal,
      async ({ library, send, bytes }) => {
        bytes.sent += body.byteLength;
        await send(
          new library.PutObjectCommand({
            ...{ Bucket: this.#bucket, Key: key, Body: body },
            ...this.#settings,
            ...(ifAbsent ? { IfNoneMatch: "*" } : {}),
            Metadata: { [nonceName]: nonce },
          }),
        );
      },
      body.byteLength,
    );
  }

  /** Removes the parts of a failed upload, as far as the store still answers. */
  async #putParts(upload: Upload, from: OpenFile, nonce: string): Promise<void> {
    const id = await this.#start(upload, nonce);
    try {
      const parts = await this.#sendParts(upload, from, id);
      await this.#end(upload, id, parts);
    } catch (error) {
      await this.#abort(upload, id).catch(() => {});
      throw error;
    }
  }

  #start({ key, signal }: Upload, nonce: string): Promise<string> {
    return this.#calls.run("upload_start", signal, async ({ library, send }) => {
      const { UploadId } = await send(
        new library.CreateMultipartUploadCommand({
          ...{ Bucket: this.#bucket, Key: key },
          ...this.#settings,
          Metadata: { [nonceName]: nonce },
        }),
      );
      return UploadId as string;
    });
  }

  async #sendParts(upload: Upload, { file, size }: OpenFile, id: string): Promise<Part[]> {
    const partBytes = Math.max(usualPartBytes, Math.ceil(size / maxParts / MiB) * MiB);
    const count = Math.ceil(size / partBytes);
    const parts: Part[] = [];
    const stop = new AbortController();
    const signal = AbortSignal.any([upload.signal, stop.signal]);
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let place = next++; place < count; place = next++) {
        const at = place * partBytes;
        parts[place] = await this.#bodies.run(async () => {
          const body = await readPart(file, at, Math.min(partBytes, size - at));
          return this.#sendPart({ ...upload, signal }, id, { number: place + 1, body });
        }, signal);
      }
    };
    const lanes = Array.from({ length: Math.min(partsTogether, count) }, () =>
      lane().catch((error: unknown) => {
        stop.abort(error);
        throw error;
      }),
    );
    // The caller closes the file, so no lane may still read it.
    await Promise.allSettled(lanes);
    upload.signal.throwIfAborted();
    if (stop.signal.aborted) throw stop.signal.reason;
    return parts;
  }

  #sendPart(
    { key, signal }: Upload,
    id: string,
    { number, body }: { readonly number: number; readonly body: Uint8Array },
  ): Promise<Part> {
    return this.#calls.run(
      "upload_part",
      signal,
      async ({ library, send, bytes }) => {
        bytes.sent += body.byteLength;
        const { ETag } = await send(
          new library.UploadPartCommand({
            ...{ Bucket: this.#bucket, Key: key, UploadId: id, PartNumber: number, Body: body },
          }),
        );
        return { PartNumber: number, ETag: ETag as string };
      },
      body.byteLength,
    );
  }

  #end({ key, signal, ifAbsent }: Upload, id: string, parts: Part[]): Promise<void> {
    return this.#calls.run("upload_end", signal, async ({ library, send }) => {
      await send(
        new library.CompleteMultipartUploadCommand({
          ...{ Bucket: this.#bucket, Key: key, UploadId: id },
          ...(ifAbsent ? { IfNoneMatch: "*" } : {}),
          MultipartUpload: { Parts: parts },
        }),
      );
    });
  }

  /** Works also after the caller gave up. */
  #abort({ key }: Upload, id: string): Promise<void> {
    return this.#calls.run(
      "upload_abort",
      AbortSignal.timeout(abortMs),
      async ({ library, send }) => {
        const place = { Bucket: this.#bucket, Key: key, UploadId: id };
        await send(new library.AbortMultipartUploadCommand(place));
      },
    );
  }

  /**
   * A refused put may have met its own object: the answer to an earlier try was lost, or a proxy sent the request twice.
   * Throws the failure when the object is not ours.
   */
  async #unlessOurs(error: unknown, upload: Upload, sent: Sent): Promise<void> {
    const isRefused =
      error instanceof S3Failure && (error.status === 412 || error.code === "NoSuchUpload");
    if (!isRefused || !(await this.#isOurs(upload, sent))) throw error;
  }

  async #isOurs(upload: Upload, { nonce, body }: Sent): Promise<boolean> {
    try {
      const found = await this.#nonceOf(upload);
      if (found !== undefined || body === undefined) return found === nonce;
      // Some servers do not keep metadata.
      return Buffer.compare(await this.#get(upload, body.byteLength), body) === 0;
    } catch (error) {
      if (error instanceof S3Failure && error.isAbsent) return false;
      throw error;
    }
  }

  #nonceOf({ key, signal }: Upload): Promise<string | undefined> {
    return this.#calls.run("attributes", signal, async ({ library, send }) => {
      const place = { Bucket: this.#bucket, Key: key };
      const { Metadata } = await send(new library.HeadObjectCommand(place));
      return Metadata?.[nonceName];
    });
  }

  #get({ key, signal }: Upload, bodyBytes: number): Promise<Uint8Array> {
    return this.#calls.run(
      "get",
      signal,
      async (session) => {
        const command = new session.library.GetObjectCommand({ Bucket: this.#bucket, Key: key });
        const { Body, ContentLength } = await session.send(command);
        return readBody(Body, ContentLength ?? 0, session);
      },
      bodyBytes,
    );
  }
}

/** An upload that failed is given up within this time, or left to the rules of the bucket. */
const abortMs = 10_000;

/** How to recognise an object that this upload put; the body is there only when it is in memory. */
interface Sent {
  readonly nonce: string;
  readonly body?: Uint8Array;
}

interface OpenFile {
  readonly file: FileHandle;
  readonly size: number;
}

interface Part {
  readonly PartNumber: number;
  readonly ETag: string;
}

type ObjectSettings = Pick<
  PutObjectCommandInput,
  "StorageClass" | "ServerSideEncryption" | "SSEKMSKeyId" | "SSEKMSEncryptionContext"
>;

function objectSettings({ encryption, storageClass }: S3Options): ObjectSettings {
  const stored =
    storageClass === undefined
      ? {}
      : { StorageClass: storageClass as NonNullable<PutObjectCommandInput["StorageClass"]> };
  if (encryption === undefined) return stored;
  if (encryption.kind === "SSE-S3") return { ...stored, ServerSideEncryption: "AES256" };
  const { keyId, context } = encryption;
  return {
    ...stored,
    ServerSideEncryption: "aws:kms",
    ...(keyId === undefined ? {} : { SSEKMSKeyId: keyId }),
    ...(context === undefined
      ? {}
      : { SSEKMSEncryptionContext: Buffer.from(context).toString("base64") }),
  };
}

async function readPart(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const body = Buffer.allocUnsafeSlow(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(body, done, length - done, at + done);
    if (bytesRead === 0) throw new Error(`the file ends at ${at + done}, before its upload does`);
    done += bytesRead;
  }
  return body;
}
