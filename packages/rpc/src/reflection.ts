import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Server } from "@grpc/grpc-js";

/** The folder of the schema: beside the code in the bundle, else at the root of the repository. */
function protoFolder(): string {
  const beside = fileURLToPath(new URL("./proto", import.meta.url));
  return existsSync(beside) ? beside : fileURLToPath(new URL("../../../proto", import.meta.url));
}

/** Serves `grpc.reflection.v1`, by which tools such as grpcurl learn the methods and messages. */
export async function addReflection(server: Pick<Server, "addService">): Promise<void> {
  const { default: loader } = await import("@grpc/proto-loader");
  const { default: reflection } = await import("@grpc/reflection");
  const schema = loader.loadSync("services.proto", { includeDirs: [protoFolder()] });
  new reflection.ReflectionService(schema).addToServer(server);
}
