import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { addDelete, cancelDelete, type DeleteRequest, fetchDeletes } from "../api/deletes.js";
import { fetchInstant, fetchLines, type Line } from "../api/lines.js";
import { Dialog } from "../parts/dialog.js";
import { formatWhole } from "../parts/format.js";
import { say } from "../parts/toast.js";
import { countable, logIn, tryParse } from "../query/derive.js";
import { zone } from "../state/explore.js";
import { formatTime, parseTimeInput, resolveRange } from "../state/range.js";

const message = (error: unknown) => (error instanceof Error ? error.message : String(error));

const elsewhere = "Ask a process of the target compactor, backend or all.";

/** Requests to delete lines, and a way to make one after a look at what would go. */
export function Deletes() {
  const requests = useSignal<readonly DeleteRequest[]>([]);
  const problem = useSignal("");
  const adding = useSignal(false);
  const asked = useSignal(0);
  useEffect(() => {
    fetchDeletes().then(
      (found) => {
        requests.value = found ?? [];
        problem.value = found === undefined ? elsewhere : "";
      },
      (error: unknown) => (problem.value = message(error)),
    );
  }, [asked.value]);
  const cancel = async (id: string) => {
    try {
      await cancelDelete(id);
      asked.value++;
    } catch (error) {
      say(message(error));
    }
  };
  const time = (seconds: number) =>
    formatTime(BigInt(Math.round(seconds)) * 1_000_000_000n, zone.value, "s");
  return (
    <section>
      <h2>Deletes</h2>
      {problem.value !== "" ? (
        <p class="dim">{problem.value}</p>
      ) : (
        <p>
          <button class="button small" type="button" onClick={() => (adding.value = true)}>
            Delete lines…
          </button>
        </p>
      )}
      {requests.value.length > 0 && (
        <table class="plain">
          <thead>
            <tr>
              <th>query</th>
              <th>from</th>
              <th>to</th>
              <th>state</th>
              <th>asked</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {requests.value.map((one) => (
              <tr key={one.request_id}>
                <td>{one.query}</td>
                <td>{time(one.start_time)}</td>
                <td>{time(one.end_time)}</td>
                <td>{one.status}</td>
                <td>{time(one.created_at)}</td>
                <td>
                  {one.status !== "processed" && (
                    <button
                      class="button small"
                      type="button"
                      onClick={() => void cancel(one.request_id)}
                    >
                      Cancel
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {adding.value && (
        <NewDelete
          onClose={() => (adding.value = false)}
          onDone={() => {
            adding.value = false;
            asked.value++;
          }}
        />
      )}
    </section>
  );
}

interface Preview {
  readonly query: string;
  readonly start: number;
  readonly end: number;
  readonly count: number;
  readonly lines: readonly Line[];
}

function NewDelete({
  onClose,
  onDone,
}: {
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const preview = useSignal<Preview | undefined>(undefined);
  const problem = useSignal("");
  const typed = useSignal("");
  const look = async (form: HTMLFormElement) => {
    const data = new FormData(form);
    const [query, from, to] = ["query", "from", "to"].map((name) => String(data.get(name)));
    try {
      preview.value = await previewOf(query ?? "", from ?? "", to ?? "");
      problem.value = "";
    } catch (error) {
      preview.value = undefined;
      problem.value = message(error);
    }
  };
  const remove = async ({ query, start, end }: Preview) => {
    try {
      await addDelete(query, start, end);
      say("The lines are being deleted; queries leave them out from now on");
      onDone();
    } catch (error) {
      problem.value = message(error);
    }
  };
  const found = preview.value;
  return (
    <Dialog title="Delete lines" onClose={onClose}>
      <form
        onInput={() => (preview.value = undefined)}
        onSubmit={(event) => {
          event.preventDefault();
          void look(event.currentTarget);
        }}
      >
        <p>
          <input
            class="field mono"
            name="query"
            aria-label="Query"
            placeholder='{app="web"} |= "secret"'
          />
        </p>
        <div class="bar">
          <input
            class="field mono"
            name="from"
            aria-label="From"
            placeholder="from: 2026-11-23 06:00"
          />
          <input class="field mono" name="to" aria-label="To" placeholder="to: now" />
        </div>
        <button class="button" type="submit">
          Preview
        </button>
      </form>
      {problem.value !== "" && (
        <p class="bad" role="alert">
          {problem.value}
        </p>
      )}
      {found !== undefined && (
        <>
          <p>
            <b>{formatWhole(found.count)}</b> lines would go
            {found.count > 20 ? "; the first 20:" : ":"}
          </p>
          <div class="code">{found.lines.map(({ text }) => text.slice(0, 200)).join("\n")}</div>
          <p>
            Type {found.count} to delete them.{" "}
            <input
              class="field"
              aria-label="Number of lines"
              inputMode="numeric"
              onInput={(event) => (typed.value = event.currentTarget.value)}
            />
          </p>
          <button
            class="button danger"
            type="button"
            disabled={typed.value !== String(found.count) || found.count === 0}
            onClick={() => void remove(found)}
          >
            Delete
          </button>
        </>
      )}
    </Dialog>
  );
}

/** How many lines a request would delete, and some of them, by the same query. */
async function previewOf(query: string, fromText: string, toText: string): Promise<Preview> {
  const expr = tryParse(query);
  const log = expr === undefined ? undefined : logIn(expr);
  if (expr?.kind !== "log" || log === undefined)
    throw new Error('the query must be one of lines, as {app="web"}');
  const [from, to] = [
    parseTimeInput(fromText, zone.peek()),
    parseTimeInput(toText || "now", zone.peek()),
  ];
  if (from === undefined || to === undefined)
    throw new Error("a time is written 2026-11-23 06:00, or now-3h");
  const { fromNs, toNs } = resolveRange({ from, to }, Date.now());
  const start = Number(fromNs / 1_000_000_000n);
  const end = Number(toNs / 1_000_000_000n);
  const span = {
    startNs: String(BigInt(start) * 1_000_000_000n),
    endNs: String(BigInt(end) * 1_000_000_000n),
  };
  const counted = `sum(count_over_time(${countable(log)} [${Math.max(1, end - start)}s]))`;
  const [{ series }, { lines }] = await Promise.all([
    fetchInstant({ query: counted, time: span.endNs }),
    fetchLines({ query, ...span, limit: 20, direction: "forward" }),
  ]);
  return { query, start, end, count: series[0]?.points[0]?.[1] ?? 0, lines };
}
