import {
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { decodeMessage, encodeMessage, text, uint } from "../protobuf/codec.js";
import { field, message } from "../protobuf/message.js";

/** `UNKNOWN` is never said. */
export const healthStates = { serving: 1, not_serving: 2, service_unknown: 3 } as const;
export type HealthState = keyof typeof healthStates;

interface HealthRequest {
  /** Empty: the process as a whole. */
  readonly service: string;
}

const requestCodec = message<HealthRequest>({ service: field(1, text) });
const answerCodec = message<{ readonly status: number }>({ status: field(1, uint) });

/** How the state of a service is asked for. */
export const healthMethod = {
  path: "/grpc.health.v1.Health/Check",
  requestStream: false,
  requestSerialize: (request: HealthRequest) => Buffer.from(encodeMessage(requestCodec, request)),
  requestDeserialize: (bytes: Buffer) => decodeMessage(requestCodec, bytes),
  responseSerialize: (state: HealthState) =>
    Buffer.from(encodeMessage(answerCodec, { status: healthStates[state] })),
  responseDeserialize: (bytes: Buffer): HealthState => stateOf(bytes),
};

/** `grpc.health.v1.Health`, by which balancers and probes ask whether a process takes calls. */
export const healthDefinition: ServiceDefinition = {
  Check: { ...healthMethod, responseStream: false },
  Watch: { ...healthMethod, path: "/grpc.health.v1.Health/Watch", responseStream: true },
};

/** Whether the services of a process take calls, and who wants to know when that changes. */
export class Health {
  readonly #states = new Map<string, HealthState>([["", "serving"]]);
  readonly #watchers = new Set<() => void>();

  /** Sets the state of a service; the empty name is the process as a whole. */
  set(service: string, state: HealthState): void {
    this.#states.set(service, state);
    for (const watch of this.#watchers) watch();
  }

  /** As handlers of `healthDefinition`. */
  handlers() {
    return {
      Check: (
        { request }: ServerUnaryCall<HealthRequest, HealthState>,
        answer: sendUnaryData<HealthState>,
      ) => {
        const state = this.#states.get(request.service);
        if (state !== undefined) answer(null, state);
        else answer({ code: status.NOT_FOUND, details: `there is no service ${request.service}` });
      },
      Watch: (call: ServerWritableStream<HealthRequest, HealthState>) => this.#watch(call),
    };
  }

  /** Ends all watches: the process stops. */
  stop(): void {
    for (const service of this.#states.keys()) this.#states.set(service, "not_serving");
    for (const watch of [...this.#watchers]) watch();
  }

  #watch(call: ServerWritableStream<HealthRequest, HealthState>): void {
    let said: HealthState | undefined;
    const watch = () => {
      const state = this.#states.get(call.request.service) ?? "service_unknown";
      if (state === said) return;
      said = state;
      call.write(state);
    };
    this.#watchers.add(watch);
    call.on("cancelled", () => this.#watchers.delete(watch));
    watch();
  }
}

function stateOf(bytes: Buffer): HealthState {
  const { status: number } = decodeMessage(answerCodec, bytes);
  const found = Object.entries(healthStates).find(([, value]) => value === number);
  return (found?.[0] ?? "service_unknown") as HealthState;
}
