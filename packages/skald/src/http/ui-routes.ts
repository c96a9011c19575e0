import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import {
  acceptsEncoding,
  type EndpointDocs,
  type HttpRequest,
  type HttpResponse,
  jsonResponse,
  type Route,
  textResponse,
} from "@skald/transport";

/** What the page shows, as `config.json` has it. */
export interface UiConfig {
  readonly version: string;
  readonly title: string;
  /** Whether requests name their tenant. */
  readonly multiTenant: boolean;
  readonly patterns: boolean;
  readonly deletes: boolean;
  readonly rules: boolean;
  /** Whether it answers as Parquet. */
  readonly parquet: boolean;
  /** What this process runs. */
  readonly targets: readonly string[];
  /** Where values of a field lead; `{value}` stands for the value. */
  readonly links: readonly { readonly field: string; readonly url: string }[];
}

export interface UiOptions {
  readonly config: UiConfig;
  /** The folder with the built interface; default: where the build puts it. */
  readonly folder?: URL;
}

/** A file of the interface, as `manifest.json` describes it. */
interface UiFile {
  readonly file: string;
  readonly type: string;
  readonly etag: string;
}

/** Nothing is loaded from elsewhere, no code or style stands in the page, and no other page may enclose it. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");
const safety = {
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};
const notFound = () => textResponse(404, "404 page not found\n");

/**
 * The web interface below `/ui/`. `/` and `/ui` lead a browser there; for other clients they do not exist. Its files are read
 * when someone asks for them.
 */
export function uiRoutes({ config, folder = uiFolder() }: UiOptions): Route[] {
  const files = new UiFiles(folder);
  const lead: Route["handler"] = ({ headers }) => {
    const isBrowser = /\btext\/html\b/.test(headers.accept ?? "");
    // Relative, so that it is right behind a proxy with a prefix.
    return isBrowser ? { status: 302, headers: { location: "ui/", vary: "Accept" } } : notFound();
  };
  const get = (path: string, handler: Route["handler"], about: EndpointDocs): Route => {
    return { methods: ["GET"], path, handler, docs: about };
  };
  return [
    get("/", lead, docs.lead),
    get("/ui", lead, docs.lead),
    get("/ui/", (request) => files.page(request), docs.page),
    get("/ui/config.json", () => configAnswer(config), docs.config),
    get("/ui/assets/:file", (request) => files.asset(request), docs.asset),
    get("/ui/:view", (request) => files.page(request), docs.page),
  ];
}

function configAnswer(config: UiConfig): HttpResponse {
  const { headers, ...answer } = jsonResponse(200, config);
  return { ...answer, headers: { ...headers, ...safety, "cache-control": "no-cache" } };
}

/** Beside the code in the bundle, else in the package of the interface. */
function uiFolder(): URL {
  const beside = new URL("./ui/", import.meta.url);
  return existsSync(beside) ? beside : new URL("../../../ui/dist/", import.meta.url);
}

/** A hashed name never means other bytes. */
const forever = "public, max-age=31536000, immutable";
const encodings = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;
const pageFile = "index.html";

/** The built files, read once each. */
class UiFiles {
  readonly #folder: URL;
  #manifest: Promise<Readonly<Record<string, UiFile>>> | undefined;
  readonly #bodies = new Map<string, Promise<Uint8Array>>();

  constructor(folder: URL) {
    this.#folder = folder;
  }

  /** The one page; what it shows is its own business. */
  page(request: HttpRequest): Promise<HttpResponse> {
    return this.#answer(pageFile, request, { ...safety, "cache-control": "no-cache" });
  }

  asset(request: HttpRequest): Promise<HttpResponse> {
    const name = `assets/${request.variables.file}`;
    return this.#answer(name, request, { ...safety, "cache-control": forever });
  }

  async #answer(
    name: string,
    { headers }: HttpRequest,
    own: Readonly<Record<string, string>>,
  ): Promise<HttpResponse> {
    const manifest = await this.#read();
    if (manifest === undefined)
      return textResponse(404, "the web interface is not here: build it with `npm run build`\n");
    const found = Object.hasOwn(manifest, name) ? manifest[name] : undefined;
    if (found === undefined) return notFound();
    const { file, type, etag } = found;
    const about = { ...own, etag, vary: "Accept-Encoding" };
    if (headers["if-none-match"] === etag) return { status: 304, headers: about };
    const [encoding, end] =
      encodings.find(([one]) => acceptsEncoding(headers["accept-encoding"], one)) ?? [];
    return {
      status: 200,
      headers: {
        ...about,
        "content-type": type,
        ...(encoding === undefined ? {} : { "content-encoding": encoding }),
      },
      body: await this.#body(`${file}${end ?? ""}`),
    };
  }

  /** What was built; undefined when nothing was. */
  async #read(): Promise<Readonly<Record<string, UiFile>> | undefined> {
    this.#manifest ??= this.#body("manifest.json").then(
      (bytes) => JSON.parse(Buffer.from(bytes).toString()) as Record<string, UiFile>,
    );
    try {
      return await this.#manifest;
    } catch (error) {
      this.#manifest = undefined;
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  #body(file: string): Promise<Uint8Array> {
    let body = this.#bodies.get(file);
    if (body === undefined) {
      body = readFile(new URL(file, this.#folder));
      this.#bodies.set(file, body);
      body.catch(() => this.#bodies.delete(file));
    }
    return body;
  }
}

const interfaceDocs = { group: "Interface", tenant: "none" } as const;

const docs = {
  lead: {
    ...interfaceDocs,
    says: "Leads a browser to the web interface.",
    answers: { 302: "To `/ui/`." },
    errors: { 404: "`Accept` does not have `text/html`" },
    example: { headers: { accept: "text/html" }, status: 302 },
    differs: "the original has no interface",
  },
  page: {
    ...interfaceDocs,
    says: "The web interface. Every view is the same page.",
    params: [{ name: "view", type: "text", says: "`explore`, `streams`, `alerts` or `system`." }],
    answers: { 200: "HTML." },
    errors: { 404: "the interface was not built" },
    example: { variables: { view: "explore" }, status: 200, contains: "<!doctype html>" },
    differs: "the original has no interface",
  },
  asset: {
    ...interfaceDocs,
    says: "A file of the web interface. Its name has a hash of its bytes.",
    params: [{ name: "file", type: "text", required: true, says: "Its name." }],
    answers: { 200: "JavaScript or CSS." },
    errors: { 404: "there is no such file" },
    example: { variables: { file: "none.js" }, status: 404 },
    differs: "the original has no interface",
  },
  config: {
    ...interfaceDocs,
    says: "What the web interface shows.",
    answers: {
      200: "`{version, title, multiTenant, patterns, deletes, rules, parquet, targets, links}`.",
    },
    example: { status: 200, contains: "multiTenant" },
    differs: "the original has no interface",
  },
} as const satisfies Readonly<Record<string, EndpointDocs>>;
