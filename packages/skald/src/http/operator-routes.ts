import type { Ingester } from "@skald/ingester";
import type { Route } from "@skald/transport";

/** What an operator may ask of an ingester. */
export function operatorRoutes(ingester: Pick<Ingester, "flush">): Route[] {
  return [
    {
      methods: ["GET", "POST"],
      path: "/flush",
      handler: async () => {
        await ingester.flush();
        return { status: 204 };
      },
    },
  ];
}
