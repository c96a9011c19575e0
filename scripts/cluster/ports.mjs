// Ports for processes that start again on the same port.
import { createServer } from "node:net";

/** The ports are below those of outgoing connections, one of which could take a port while its owner is down. */
const range = { from: 20_000, to: 32_000 };
const blockPorts = 64;

/**
 * Returns a function that gives a free port at each call. The ports are from a block whose first port this process keeps open,
 * so that another process that calls this takes another block.
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

/** Opens a server at a port; undefined when the port is taken. */
function listenAt(port) {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", (error) =>
      error.code === "EADDRINUSE" || error.code === "EACCES" ? resolve(undefined) : reject(error),
    );
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
