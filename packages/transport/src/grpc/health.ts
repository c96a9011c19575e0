import { notFound } from "@skald/model";
import { decodeMessage, encodeMessage, text, uint } from "../protobuf/codec.js";
import { field, message } from "../protobuf/message.js";

/** As numbers of `ServingStatus`. */
const healthStates = { serving: 1, not_serving: 2, service_unknown: 3 } as const;
export type HealthState = keyof typeof healthStates;

interface HealthRequest {
  /** Empty: the process as a whole. */
  readonly service: string;
}

const requestCodec = message<HealthRequest>({ service: field(1, text) });
const answerCodec = message<{ readonly status: number }>({ status: field(1, uint) });

export const healthPaths = {
  check: "/grpc.health.v1.Health/Check",
  watch: "/grpc.health.v1.Health/Watch",
} as const;

export function encodeHealthRequest(service: string): Uint8Array {
  return encodeMessage(requestCodec, { service });
}

export function decodeHealthAnswer(bytes: Uint8Array): HealthState {
  const { status } = decodeMessage(answerCodec, bytes);
  const found = Object.entries(healthStates).find(([, number]) => number === status);
  return (found?.[0] ?? "service_unknown") as HealthState;
}

/** `grpc.health.v1.Health`: whether the services of a process take calls, and who wants to know when that changes. */
export class Health {
  readonly #states = new Map<string, HealthState>([["", "serving"]]);
  readonly #watchers = new Set<() => void>();

  /** Sets the state of a service; the empty name is the process as a whole. */
  set(service: string, state: HealthState): void {
    this.#states.set(service, state);
    for (const watch of this.#watchers) watch();
  }

  /** Says of every service that it takes no more. */
  stop(): void {
    for (const service of this.#states.keys()) this.set(service, "not_serving");
  }

  /** Answers `Check`. Throws not_found for a service that is not there. */
  check(request: Uint8Array): Uint8Array {
    const { service } = decodeMessage(requestCodec, request);
    const state = this.#states.get(service);
    if (state === undefined) throw notFound(`there is no service ${service}`);
    return answerOf(state);
  }

  /** Answers `Watch`: `send` gets the state now and whenever it changes, until the signal is aborted. */
  watch(request: Uint8Array, send: (answer: Uint8Array) => void, signal: AbortSignal): void {
    const { service } = decodeMessage(requestCodec, request);
    let said: HealthState | undefined;
    const watch = () => {
      const state = this.#states.get(service) ?? "service_unknown";
      if (state === said) return;
      said = state;
      send(answerOf(state));
    };
    this.#watchers.add(watch);
    signal.addEventListener("abort", () => this.#watchers.delete(watch), { once: true });
    watch();
  }
}

function answerOf(state: HealthState): Uint8Array {
  return encodeMessage(answerCodec, { status: healthStates[state] });
}
