import { decode, encode, type Inside, type MessageName, services } from "@skald/contracts/codec";

/** How a message is sent, and read again. */
export interface Wire<T> {
  encode(value: T): Uint8Array;
  decode(bytes: Uint8Array): T;
}

/** A method of a service, the same on both sides. */
export interface Method<Request, Answer> {
  /** `/skald.v1.Ingester/Push` */
  readonly path: string;
  readonly request: Wire<Request>;
  readonly answer: Wire<Answer>;
  /** The answer is a stream of parts; see parts.ts. */
  readonly isStream: boolean;
}

type Services = typeof services;
export type ServiceName = keyof Services;
type Whole<Name> = Name extends `${infer Message}Part` ? Message : Name;
type In<Name> = Name extends MessageName ? Inside<Name> : never;
type MethodOf<Entry> = Entry extends readonly [infer Request, infer Answer, ...unknown[]]
  ? Method<In<Request>, In<Whole<Answer>>>
  : never;
/** The methods of a service by their names in proto/services.proto. */
export type Methods<S extends ServiceName> = {
  readonly [M in keyof Services[S]]: MethodOf<Services[S][M]>;
};

/** Any methods of a service, where their messages do not matter. */
// biome-ignore lint/suspicious/noExplicitAny: methods take and give messages of their own types.
export type AnyMethods = Readonly<Record<string, Method<any, any>>>;

export function serviceNameOf(service: string): string {
  return `skald.v1.${service}`;
}

/** The methods of a service, as the schema has them. */
export function methodsOf<S extends ServiceName>(service: S): Methods<S> {
  const entries = Object.entries<readonly string[]>(services[service]);
  const methods = entries.map(([name, [request = "", answer = "", stream]]) => [
    name,
    {
      path: `/${serviceNameOf(service)}/${name}`,
      request: wireOf(request),
      answer: wireOf(answer.replace(/Part$/, "")),
      isStream: stream === "stream",
    },
  ]);
  return Object.fromEntries(methods) as unknown as Methods<S>;
}

/** The types of messages are those of `Methods`: here they would be a union of all. */
function wireOf(name: string): Wire<unknown> {
  const any = name as "Empty";
  return {
    encode: (value) => encode(any, value as object),
    decode: (bytes) => decode(any, bytes),
  };
}

/** A message as its bytes: the handler or the caller reads them. */
export const encodedWire: Wire<Uint8Array> = {
  encode: (bytes) => bytes,
  decode: (bytes) => bytes,
};
