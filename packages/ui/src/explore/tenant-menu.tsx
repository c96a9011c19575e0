import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetchTenants } from "../api/system.js";
import { Menu } from "../parts/menu.js";
import { navigate, tenant } from "../state/explore.js";
import { recall, remember } from "../state/store.js";

const recentMax = 8;

/** The tenant whose logs are read: those that the server knows, recent ones, or any other by name. */
export function TenantMenu() {
  const open = useSignal(false);
  const known = useSignal<readonly string[]>([]);
  useEffect(() => {
    if (!open.value) return;
    fetchTenants().then(
      (names) => (known.value = names),
      () => undefined,
    );
  }, [open.value]);
  const recent = recall<string[]>("tenants", []);
  const choose = (name: string) => {
    open.value = false;
    if (name === "") return;
    remember("tenant", name);
    remember("tenants", [name, ...recent.filter((one) => one !== name)].slice(0, recentMax));
    navigate({ tenant: name, line: "" });
  };
  return (
    <div class="tenant anchor">
      <button
        class="tool"
        type="button"
        id="tenant"
        aria-expanded={open.value}
        onClick={() => (open.value = !open.value)}
      >
        tenant <b>{tenant.value || "none"}</b> <span aria-hidden="true">▾</span>
      </button>
      {open.value && (
        <Menu label="Tenant" onClose={() => (open.value = false)}>
          <form
            class="chip-form"
            onSubmit={(event) => {
              event.preventDefault();
              choose(String(new FormData(event.currentTarget).get("name")).trim());
            }}
          >
            <input
              class="field"
              name="name"
              aria-label="Tenant"
              placeholder="Another tenant"
              autocomplete="off"
            />
          </form>
          {[...new Set([...recent, ...known.value])].map((name) => (
            <button
              class="item"
              type="button"
              key={name}
              aria-pressed={name === tenant.value}
              onClick={() => choose(name)}
            >
              {name}
            </button>
          ))}
        </Menu>
      )}
    </div>
  );
}
