const script = new URL("../../../scripts/cluster/ports.mjs", import.meta.url).href;

let ports: Promise<() => Promise<number>> | undefined;

/** A port for a process that cannot choose one itself: nobody has it, and no outgoing connection is given it. */
export async function freePort(): Promise<number> {
  ports ??= import(script).then(({ takePorts }) => takePorts());
  return (await ports)();
}
