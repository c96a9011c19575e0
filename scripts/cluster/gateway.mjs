// The gateway in front of the services. It passes each path, also a WebSocket, to the services that serve it, in turn, by the
// routes of the shipped gateways. It refuses nothing, because its only clients are its operators.
import { createServer, request as send } from "node:http";
import { connect } from "node:net";
import { routeOf } from "../../deploy/gateway/routes.mjs";

/** Paths that every service of the target gets, not only the next one. */
const forAll = /^\/(flush|ready|ingester\/prepare_shutdown)$/;

/** Starts the gateway on a port; `portsOf(target)` gives the ports of running services. Resolves with the server. */
export async function startGateway(port, portsOf) {
  let turn = 0;
  const inTurn = (path) => {
    const ports = portsOf(routeOf(path).service);
    turn = (turn + 1) % 0xffff;
    return ports.map((_, i) => ports[(i + turn) % ports.length]);
  };
  const server = createServer(async (request, response) => {
    const path = request.url.split("?")[0];
    const sent = [];
    response.on("close", () => {
      if (!response.writableFinished) for (const one of sent) one.destroy();
    });
    try {
      const body = await readAll(request);
      const ask = (port) => sendOn(port, request, body, sent);
      if (forAll.test(path)) return await askAll(path, ask, response, portsOf);
      await passOn(ask, response, inTurn(path), changesNothing(request.method, path));
    } catch (error) {
      if (!response.headersSent) response.writeHead(502);
      response.end(`${error.message}\n`);
    }
  });
  server.on("upgrade", (request, socket, head) => {
    const [first] = inTurn(request.url.split("?")[0]);
    if (first === undefined) return socket.destroy();
    const peer = connect(first, "127.0.0.1", () => {
      const headers = [];
      for (let i = 0; i < request.rawHeaders.length; i += 2)
        headers.push(`${request.rawHeaders[i]}: ${request.rawHeaders[i + 1]}\r\n`);
      peer.write(`${request.method} ${request.url} HTTP/1.1\r\n${headers.join("")}\r\n`);
      peer.write(head);
      peer.pipe(socket).pipe(peer);
    });
    for (const [one, other] of [
      [socket, peer],
      [peer, socket],
    ]) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return server;
}

async function readAll(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** Whether a request may be sent again when a service ended without an answer to it. */
function changesNothing(method, path) {
  return method === "GET" || method === "HEAD" || routeOf(path).repeats === true;
}

/** Passes a request to the first service that can be reached, or that answers if the request may be repeated. */
async function passOn(ask, response, ports, mayRepeat) {
  let failure = new Error("no service of this path runs");
  for (const port of ports) {
    try {
      const answer = await ask(port);
      response.writeHead(answer.statusCode, answer.rawHeaders);
      answer.on("error", () => response.destroy());
      answer.pipe(response);
      return;
    } catch (error) {
      failure = error;
      // A service that took the request may have done it, so the client must decide whether to ask again.
      if (error.code !== "ECONNREFUSED" && !mayRepeat) break;
    }
  }
  throw failure;
}

async function askAll(path, ask, response, portsOf) {
  const ports = path === "/ready" ? portsOf() : portsOf("ingester");
  const answers = await Promise.all(
    ports.map(async (port) => {
      const answer = await ask(port);
      return { status: answer.statusCode, text: (await readAll(answer)).toString() };
    }),
  );
  const worst = answers.reduce((a, b) => (b.status > a.status ? b : a));
  response.writeHead(worst.status, { "content-type": "text/plain; charset=utf-8" });
  response.end(worst.text);
}

/** Sends a request to a service and adds the bytes to `sent`; resolves with the answer, before its body. */
function sendOn(port, { method, url: path, headers }, body, sent) {
  return new Promise((resolve, reject) => {
    const { "transfer-encoding": _, ...rest } = headers;
    const own = body.length > 0 ? { ...rest, "content-length": body.length } : rest;
    const asked = send({ host: "127.0.0.1", port, method, path, headers: own }, resolve);
    sent.push(asked);
    asked.on("error", reject);
    asked.end(body);
  });
}
