// Ports of processes that are started again at the same place.
import { createServer } from "node:net";

/** Below those that systems give to outgoing connections, one of which could have a port while its owner is away. */
const range = { from: 20_000, to: 32_000 };
const blockPorts = 64;

/**
 * Gives ports that nobody has, one at each call. They are of a block whose first port this process holds for as long as
 * it lives, so that another that chooses ports in this way takes another block.
 */
export async function takePorts() {
  const blocks = (range.to - range.from) / blockPorts;
  const first = Math.floor(Math.random() * blocks);
  for (let i = 0; i < blocks; i++) {
    const start = range.from + ((first + i) % Math.floor(blocks)) * blockPorts;
    const holder = await listenAt(start);
    if (holder === undefined) continue;
    holder.unref();
    return portsAfter(start);
  }
  throw new Error(`no block of ports from ${range.from} to ${range.to} is free`);
}

function portsAfter(start) {
  let last = start;
  return async () => {
    while (++last < start + blockPorts) {
      const holder = await listenAt(last);
      if (holder === undefined) continue;
      await new Promise((resolve) => holder.close(resolve));
      return last;
    }
    throw new Error(`the ports behind ${start} are all taken`);
  };
}

/** A server at a port, or undefined where somebody else is. */
function listenAt(port) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error) =>
      error.code === "EADDRINUSE" || error.code === "EACCES" ? resolve(undefined) : reject(error),
    );
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
