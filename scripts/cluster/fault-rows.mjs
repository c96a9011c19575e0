// What can go wrong in a cluster. Each row says what the cluster is like, what happens, and how it ends. A row begins and ends
// with a healthy cluster.

/** The fields of a row: for `plan` see services.mjs; `run` resolves when the fault is over; `wait(ms)` lets the load go on. */
export const faultRows = [
  {
    name: "ingester killed, started again",
    run: async ({ cluster, wait, ms }) => {
      await cluster.end("ingester-1", "SIGKILL");
      await wait(ms);
      await cluster.start("ingester-1");
    },
  },
  ...[
    ["distributor-1"],
    ["querier-1"],
    ["query-frontend"],
    ["query-scheduler"],
    ["index-gateway"],
    ["compactor"],
    ["ruler"],
  ].map(([name]) => ({
    name: `${name} killed, started again`,
    run: async ({ cluster, wait, ms }) => {
      await cluster.end(name, "SIGKILL");
      await wait(ms);
      await cluster.start(name);
    },
  })),
  {
    name: "rolling restart of all",
    run: async ({ cluster, wait, names }) => {
      for (const name of names) {
        await cluster.end(name, "SIGTERM");
        await cluster.start(name);
        await wait(500);
      }
    },
  },
  {
    name: "Redis killed, comes back empty",
    longMs: 120_000,
    run: async ({ cluster, wait, ms }) => {
      await cluster.end("redis", "SIGKILL");
      await wait(ms);
      await cluster.start("redis");
    },
  },
  {
    name: "Redis stands still",
    run: async ({ cluster, wait, ms }) => {
      await cluster.end("redis", "SIGSTOP");
      await wait(ms);
      await cluster.end("redis", "SIGCONT");
    },
  },
  ...[
    ["distributor-1>ingester-1", "distributor | ingester"],
    ["querier-1>ingester-1", "querier | ingester"],
    ["querier-1>query-scheduler", "querier | scheduler"],
    ["query-frontend>query-scheduler", "frontend | scheduler"],
    ["querier-1>index-gateway", "querier | index gateway"],
    ["redis", "all | Redis"],
  ].flatMap(([link, name]) =>
    ["drop", "refuse", "strand"].map((mode) => ({
      name: `${name}: ${{ drop: "black hole", refuse: "refused", strand: "connections lost without a word" }[mode]}`,
      run: async ({ cluster, wait, ms }) => {
        await cluster.cut(link, mode);
        await wait(ms);
        await cluster.cut(link, "pass");
      },
    })),
  ),
  ...["refuse", "drop"].map((mode) => ({
    name: `store ${mode === "drop" ? "does not answer" : "down"}`,
    run: async ({ cluster, wait, ms, flush }) => {
      await flush();
      await cluster.cut("s3", mode);
      void flush().catch(() => undefined);
      await wait(ms);
      await cluster.cut("s3", "pass");
      await flush();
    },
  })),
  ...["ingester-1", "distributor-1", "querier-1", "query-scheduler", "index-gateway"].map(
    (name) => ({
      name: `${name} stands still, goes on`,
      run: async ({ cluster, wait, ms }) => {
        await cluster.end(name, "SIGSTOP");
        await wait(ms);
        await cluster.end(name, "SIGCONT");
      },
    }),
  ),
  {
    name: "ingester-1 and ingester-2 stand still, go on",
    run: async ({ cluster, wait, ms }) => {
      const slow = ["ingester-1", "ingester-2"];
      for (const name of slow) await cluster.end(name, "SIGSTOP");
      await wait(ms);
      for (const name of slow) await cluster.end(name, "SIGCONT");
    },
  },
  {
    name: "a fourth ingester joins, and leaves",
    run: async ({ cluster, wait, ms }) => {
      await cluster.start("ingester-4");
      await wait(ms);
      await cluster.leave("ingester-4");
    },
  },
  {
    name: "ingester lost for good, another comes",
    run: async ({ cluster, wait, ms }) => {
      await cluster.end("ingester-2", "SIGKILL");
      await wait(ms);
      await cluster.start("ingester-4");
    },
    spoils: true,
  },
  {
    name: "a zone of two ingesters lost",
    plan: { counts: { ingester: 6 }, zones: 3 },
    run: async ({ cluster, wait, ms }) => {
      await Promise.all([
        cluster.end("ingester-1", "SIGKILL"),
        cluster.end("ingester-4", "SIGKILL"),
      ]);
      await wait(ms);
    },
    spoils: true,
  },
  {
    name: "an ingester's clock is a minute ahead",
    plan: { clocks: { "ingester-3": 60_000 } },
    run: async ({ wait, ms, flush }) => {
      await wait(ms);
      await flush();
    },
  },
  {
    name: "an ingester's clock is a minute behind",
    plan: { clocks: { "ingester-3": -60_000 } },
    run: async ({ wait, ms, flush }) => {
      await wait(ms);
      await flush();
    },
  },
  {
    name: "two versions at a time",
    needs: "other",
    run: async ({ wait, ms, flush }) => {
      await wait(ms);
      await flush();
    },
  },
];

/** The plan of rows without their own: all connections that rows cut, and a spare ingester. */
export const usualPlan = {
  spares: ["ingester-4"],
  links: [
    ...["redis", "s3", "distributor-1>ingester-1", "querier-1>ingester-1"],
    ...["querier-1>query-scheduler", "query-frontend>query-scheduler", "querier-1>index-gateway"],
  ],
};

/** The services that run from the other build. */
export const otherBuild = [
  "ingester-2",
  "distributor-2",
  "querier-2",
  "query-scheduler",
  "compactor",
];
