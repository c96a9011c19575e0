import { connect, type Socket } from "node:net";

/** A connection on which tests send what no HTTP client would. */
export interface Wire {
  readonly socket: Socket;
  /** Sends as fast as the other side takes it; resolves when all is handed over or the connection ended. */
  send(bytes: Uint8Array | string): Promise<void>;
  /** Resolves with all that came, as text, when the other side closed the connection, orderly or not. */
  closed(): Promise<string>;
  /** Resolves with all that came once it contains the text; rejects when the connection ends before. */
  until(text: string): Promise<string>;
}

export async function openWire(port: number): Promise<Wire> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  let onText = (): void => undefined;
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    onText();
  });
  // A reset is one of the ways in which the other side closes.
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("connect", resolve));
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return {
    socket,
    send: async (bytes) => {
      if (socket.destroyed || socket.write(bytes)) return;
      await Promise.race([ended, new Promise((resolve) => socket.once("drain", resolve))]);
    },
    closed: async () => {
      await ended;
      return text;
    },
    until: (part) =>
      new Promise((resolve, reject) => {
        onText = () => {
          if (text.includes(part)) resolve(text);
        };
        onText();
        void ended.then(() => reject(new Error(`closed before ${part} came: ${text}`)));
      }),
  };
}
