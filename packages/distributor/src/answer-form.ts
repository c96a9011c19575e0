import type { PushStyle } from "@skald/push";

/** How the text of an answer to a push is written. */
export interface AnswerForm {
  readonly contentType: string;
  readonly encode: (text: string) => Uint8Array;
}

export const plainText: AnswerForm = {
  contentType: "text/plain; charset=utf-8",
  encode: (text) => Buffer.from(`${text}\n`),
};

/** OTLP: a google.rpc.Status in the encoding of the request, its code left out because the HTTP status says it. */
const statusJson: AnswerForm = {
  contentType: "application/json",
  encode: (message) => Buffer.from(JSON.stringify({ message })),
};

const statusProtobuf: AnswerForm = { contentType: "application/x-protobuf", encode: encodeStatus };

/** The form of answers to a push of a style and a content type. */
export function answerForm(style: PushStyle, contentType: string | undefined): AnswerForm {
  if (style !== "otlp") return plainText;
  return contentType?.startsWith("application/json") === true ? statusJson : statusProtobuf;
}

/** Collectors try again after a 503 and drop what was answered with 500. */
export function retryableStatus(status: number): number {
  return status === 500 ? 503 : status;
}

const messageTag = 0x12;

function encodeStatus(message: string): Uint8Array {
  const text = Buffer.from(message);
  const header = [messageTag];
  let rest = text.length;
  for (; rest > 0x7f; rest >>>= 7) header.push((rest & 0x7f) | 0x80);
  header.push(rest);
  return Buffer.concat([Uint8Array.from(header), text]);
}
