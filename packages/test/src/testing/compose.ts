import { randomBytes } from "node:crypto";
import { freePort } from "@skald/testkit";
import {
  DockerComposeEnvironment,
  getContainerRuntimeClient,
  type StartedDockerComposeEnvironment,
} from "testcontainers";
import { root } from "./deploy/repository.js";
import { waitFor } from "./server.js";

/** Containers of a service, by its name; a service that is not named has as many as the compose file says. */
export type Scale = Readonly<Record<string, number>>;

const startTimeoutMs = 180_000;

/** The cluster of docker-compose.yml under a project name of its own, with containers that a test kills and scales. */
export class ComposeCluster {
  /** The address of the gateway. */
  readonly url: string;
  readonly #project: string;
  readonly #port: number;
  /** Volumes of containers, which Compose leaves behind when it takes a container away. */
  readonly #volumes = new Set<string>();
  #environment: StartedDockerComposeEnvironment | undefined;

  private constructor(project: string, port: number) {
    this.#project = project;
    this.#port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Builds the image and starts every service; resolves when all are healthy. */
  static async start(): Promise<ComposeCluster> {
    const project = `skald-test-${randomBytes(4).toString("hex")}`;
    const cluster = new ComposeCluster(project, await freePort());
    await cluster.#up(["--build"]);
    return cluster;
  }

  /** Starts and removes containers, and leaves the others alone; resolves when all are healthy. */
  async scale(scale: Scale): Promise<void> {
    const counts = Object.entries(scale).flatMap(([name, count]) => [
      "--scale",
      `${name}=${count}`,
    ]);
    await this.#up(["--no-recreate", ...counts]);
  }

  /** Puts a new container in the place of that of a service; resolves when all are healthy. */
  async recreate(service: string): Promise<void> {
    const container = await this.#container(`${service}-1`);
    await container.stop();
    await container.remove();
    await this.#up(["--no-recreate"]);
  }

  /** Kills a container such as "querier-1" with SIGKILL; it stays down until `revive`. */
  async kill(name: string): Promise<void> {
    const container = await this.#container(name);
    await container.kill({ signal: "KILL" });
    await waitFor(async () => !(await container.inspect()).State.Running);
  }

  /** Starts a container that was killed; resolves when it is healthy. */
  async revive(name: string): Promise<void> {
    const container = await this.#container(name);
    await container.start();
    await waitFor(
      async () => (await container.inspect()).State.Health?.Status === "healthy",
      startTimeoutMs,
    );
  }

  /** Removes containers, networks and volumes. */
  async remove(): Promise<void> {
    await this.#environment?.down({ removeVolumes: true, timeout: 1000 });
    const { dockerode } = (await getContainerRuntimeClient()).container;
    const { Volumes } = await dockerode.listVolumes();
    for (const { Name } of Volumes)
      if (this.#volumes.has(Name)) await dockerode.getVolume(Name).remove();
  }

  async #up(commandOptions: string[]): Promise<void> {
    this.#environment = await new DockerComposeEnvironment(root, "docker-compose.yml")
      .withProjectName(this.#project)
      .withProfiles("cluster")
      .withEnvironment({ SKALD_PORT: String(this.#port) })
      .withClientOptions({ commandOptions })
      .withStartupTimeout(startTimeoutMs)
      .up();
    const { dockerode } = (await getContainerRuntimeClient()).container;
    const containers = await dockerode.listContainers({
      filters: { label: [`com.docker.compose.project=${this.#project}`] },
    });
    for (const { Mounts } of containers)
      for (const { Type, Name } of Mounts)
        if (Type === "volume" && Name !== undefined) this.#volumes.add(Name);
  }

  async #container(name: string) {
    if (this.#environment === undefined) throw new Error("the cluster is not up");
    const { container } = await getContainerRuntimeClient();
    return container.getById(this.#environment.getContainer(name).getId());
  }
}
