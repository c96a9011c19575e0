import type { GrpcConnection, GrpcServer } from "@skald/transport/grpc";
import { empty } from "@skald/transport/protobuf";
import { ruleGroupsAnswer, ruleGroupsRequest } from "../codec/rule-messages.js";
import type { Rules } from "../rules.js";
import { callRemote, serve, wireOf } from "./method.js";

const service = "skald.v1.Rules";

const methods = {
  groups: {
    path: `/${service}/Groups`,
    request: wireOf(ruleGroupsRequest),
    answer: wireOf(ruleGroupsAnswer),
  },
  changed: { path: `/${service}/Changed`, request: wireOf(empty), answer: wireOf(empty) },
};

/** Lets other rulers ask what this one evaluates. */
export function serveRules(server: Pick<GrpcServer, "add">, served: Rules): void {
  server.add({
    name: service,
    methods: {
      Groups: serve(methods.groups, async (request, options) => ({
        groups: await served.groups(request, options),
      })),
      Changed: serve(methods.changed, async (_, options) => {
        await served.changed(options);
        return {};
      }),
    },
  });
}

/** The ruler at the other end of a connection. */
export function remoteRules(connection: GrpcConnection): Rules {
  return {
    groups: async (request, options) =>
      (await callRemote(connection, methods.groups, request, options)).groups,
    changed: async (options) => void (await callRemote(connection, methods.changed, {}, options)),
  };
}
