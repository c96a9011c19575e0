// The other process of tests: `serve` answers nothing, `call ADDRESS` waits for an answer, `stall ADDRESS` reads none.
import { connect } from "node:http2";
import { connectTestGrpc, startTestGrpc, testMethod } from "./grpc.js";

const [, , role, address = ""] = process.argv;
if (role === "serve") {
  const { address: own } = await startTestGrpc({
    Wait: () => {
      process.send?.("waiting");
      return new Promise(() => undefined);
    },
  });
  process.send?.(own.split(":")[1]);
} else if (role === "call") {
  const { signal } = new AbortController();
  await connectTestGrpc(address).call(testMethod("Wait"), new Uint8Array(0), { signal });
} else {
  const stream = connect(`http://${address}`).request({
    ":method": "POST",
    ":path": "/skald.v1.Test/Give",
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.on("response", () => process.send?.("answered"));
  // A frame with an empty message.
  stream.end(Buffer.alloc(5));
  stream.pause();
}
