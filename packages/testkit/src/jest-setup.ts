// Runs before each test file: properties take the seed of the run, and a failing one prints it with its counterexample.
import fc from "fast-check";
import { testSeed } from "./random.js";

fc.configureGlobal({ seed: testSeed() });
