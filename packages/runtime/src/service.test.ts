import { describe, expect, it } from "@jest/globals";
import { Service, type ServiceHooks } from "./service.js";

/** A run hook that works until it is told to end. */
const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });

describe("Service", () => {
  it("goes from New to Terminated and calls each hook once", async () => {
    const calls: string[] = [];
    const service = new Service({
      name: "a",
      start: () => void calls.push(`start in ${service.state}`),
      run: async (signal) => {
        await untilAborted(signal);
        calls.push("run ended");
      },
      stop: () => void calls.push(`stop in ${service.state}`),
    });
    expect(service.state).toBe("New");
    await Promise.all([service.start(), service.start()]);
    expect(service.state).toBe("Running");
    await Promise.all([service.stop(), service.stop()]);
    expect(service.state).toBe("Terminated");
    expect(calls).toEqual(["start in Starting", "run ended", "stop in Stopping"]);
    await service.ended;
  });

  const boom = new Error("boom");
  const failing: [string, Omit<ServiceHooks, "name">, boolean][] = [
    ["start throws", { start: () => Promise.reject(boom) }, true],
    ["run throws", { run: () => Promise.reject(boom) }, false],
    ["stop throws", { stop: () => Promise.reject(boom), run: async () => undefined }, false],
  ];
  it.each(failing)("is Failed when %s", async (_, hooks, startRejects) => {
    const service = new Service({ name: "a", ...hooks });
    const started = service.start();
    if (startRejects) await expect(started).rejects.toBe(boom);
    else await started;
    await service.ended;
    expect(service.state).toBe("Failed");
    expect(service.failure).toBe(boom);
    await service.stop();
    expect(service.state).toBe("Failed");
  });

  it("releases what start took when run throws", async () => {
    let released = false;
    const service = new Service({
      name: "a",
      run: () => Promise.reject(new Error("boom")),
      stop: () => {
        released = true;
      },
    });
    await service.start();
    await service.ended;
    expect(released).toBe(true);
  });

  it("terminates when run ends by itself", async () => {
    const service = new Service({ name: "a", run: async () => undefined });
    await service.start();
    await service.ended;
    expect(service.state).toBe("Terminated");
  });

  it("terminates at once when stopped before it started, and cannot start then", async () => {
    const service = new Service({ name: "a" });
    await service.stop();
    expect(service.state).toBe("Terminated");
    await expect(service.start()).rejects.toThrow("service a is Terminated");
  });

  it("aborts a start that hangs", async () => {
    const service = new Service({ name: "a", start: untilAborted });
    const started = service.start();
    expect(service.state).toBe("Starting");
    await service.stop();
    await started;
    expect(service.state).toBe("Terminated");
  });
});
