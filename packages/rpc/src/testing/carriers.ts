import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { makeEchoes, type Services } from "./echo.js";
import { connectTestServices, startTestServices } from "./services.js";

/** The contracts of services that answer with what they are asked, by one way to call them. */
export interface Carrier {
  readonly services: Services;
  /** What happened over there that no answer tells. */
  readonly seen: readonly string[];
  stop(): Promise<void>;
}

async function byMethodCall(): Promise<Carrier> {
  const seen: string[] = [];
  return { services: makeEchoes(seen), seen, stop: async () => undefined };
}

async function overSocket(): Promise<Carrier> {
  const seen: string[] = [];
  const { server, address } = await startTestServices(makeEchoes(seen));
  const { connection, services } = connectTestServices(address);
  const stop = async () => {
    connection.close();
    await server.kill();
  };
  return { services, seen, stop };
}

async function toProcess(): Promise<Carrier> {
  const child = forkPeer();
  const seen: string[] = [];
  const address = await new Promise<string>((resolve) => child.once("message", resolve));
  child.on("message", (text: string) => seen.push(text));
  const { connection, services } = connectTestServices(address);
  const stop = async () => {
    connection.close();
    child.kill("SIGKILL");
  };
  return { services, seen, stop };
}

function forkPeer(): ChildProcess {
  return fork(new URL("./services-peer.js", import.meta.url), { execArgv: [] });
}

/** Resolves once something happened over there. */
export async function happened({ seen }: Carrier, text: string): Promise<void> {
  while (!seen.includes(text)) await pause(1);
}

/** Every way to call the contracts, for `describe.each`. */
export const carriers: readonly (readonly [name: string, open: () => Promise<Carrier>])[] = [
  ["method call", byMethodCall],
  ["gRPC", overSocket],
  ["gRPC to another process", toProcess],
];
