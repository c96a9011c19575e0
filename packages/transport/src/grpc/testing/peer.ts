// The other process of tests: `serve` answers nothing, `call ADDRESS` waits for an answer, `stall ADDRESS` reads none.
import { connect } from "node:http2";
import { connectTestGrpc, startTestGrpc } from "./grpc.js";

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
  await connectTestGrpc(address).call("/test.Test/Wait", [], { signal });
} else {
  const stream = connect(`http://${address}`).request({
    ":method": "POST",
    ":path": "/test.Test/Give",
    "content-type": "application/grpc",
    te: "trailers",
    "skald-protocol": "1",
  });
  stream.on("response", () => process.send?.("answered"));
  // An empty message in one piece: five bytes of frame, two of which size it at 0.
  stream.end(Buffer.from([0, 0, 0, 0, 2, 0x10, 0]));
  stream.pause();
}
