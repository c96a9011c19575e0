import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "@jest/globals";
import { describeObjectStore } from "../testing/object-store.suite.js";
import { MemoryStore } from "./memory-store.js";

const directory = mkdtempSync(join(tmpdir(), "skald-memory-store-"));
afterAll(() => rmSync(directory, { recursive: true }));

describeObjectStore("memory store", async () => ({ store: new MemoryStore(), directory }));
