// The preStop hook of an ingester's pod. When the set shrinks, the pod will not come back, so the hook tells the process to
// upload everything that is only on its disk (POST /ingester/prepare_shutdown). When the pod only restarts, it keeps its disk, and
// there is nothing to do, except to undo what the hook asked when the set shrank before. What an operator asked stays. When the hook
// cannot tell, it assumes that the set shrinks, which is safe but slower.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { join } from "node:path";

const account = process.env.SKALD_ACCOUNT_FOLDER ?? "/var/run/secrets/kubernetes.io/serviceaccount";
const url = process.env.SKALD_URL ?? "http://127.0.0.1:3100";
/** The file that says that the hook asked, on the disk that has the process's own mark of it. */
const asked = join(process.env.SKALD_DATA_FOLDER ?? "/var/loki", "prepared-by-hook");

const leaves = await willLeave().catch((error) => {
  console.error(`prepare-shutdown: could not ask for the size of the set: ${error.message}`);
  return true;
});
if (leaves && (await send("GET")) !== "set") {
  await send("POST");
  writeFileSync(asked, "");
}
if (!leaves && existsSync(asked)) {
  await send("DELETE");
  rmSync(asked);
}

async function send(method) {
  const signal = AbortSignal.timeout(10_000);
  const answer = await fetch(`${url}/ingester/prepare_shutdown`, { method, signal });
  if (!answer.ok) throw new Error(`${method} /ingester/prepare_shutdown: ${answer.status}`);
  return (await answer.text()).trim();
}

/** Whether the set is too small for this pod, whose number is at the end of its name. */
async function willLeave() {
  const [, set, ordinal] = /^(.*)-(\d+)$/.exec(process.env.POD_NAME ?? "") ?? [];
  if (set === undefined) throw new Error("POD_NAME is not that of a pod of a StatefulSet");
  const { spec } = await askForScale(set);
  return Number(ordinal) >= spec.replicas;
}

function askForScale(set) {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = process.env;
  const read = (file) => readFileSync(`${account}/${file}`, "utf8").trim();
  const path = `/apis/apps/v1/namespaces/${read("namespace")}/statefulsets/${set}/scale`;
  const headers = { authorization: `Bearer ${read("token")}` };
  return new Promise((resolve, reject) => {
    const request = get({ host, port, path, headers, ca: read("ca.crt"), timeout: 10_000 });
    request.on("timeout", () => request.destroy(new Error("no answer within 10 s")));
    request.on("error", reject);
    request.on("response", async (response) => {
      let text = "";
      for await (const chunk of response) text += chunk;
      if (response.statusCode !== 200) reject(new Error(`${path}: ${response.statusCode}`));
      else resolve(JSON.parse(text));
    });
  });
}
