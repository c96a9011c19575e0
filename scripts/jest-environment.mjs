import vm from "node:vm";
import { TestEnvironment } from "jest-environment-node";

keepCompiledCode();

/**
 * Jest's environment for Node with a plain global object. Jest's own is a proxy, which each use of `Math` or `Uint8Array`
 * in a loop asks again: tests of loops over bytes took twice as long.
 */
export default class PlainEnvironment extends TestEnvironment {
  constructor(config, context) {
    const { createContext } = vm;
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY);
    try {
      super(config, context);
    } finally {
      vm.createContext = createContext;
    }
    // As Node has it: the hundred frames of Jest cost most of the time where errors are expected.
    this.global.Error.stackTraceLimit = 10;
  }
}

/**
 * Jest loads the modules of a test file anew for each file, hundreds of them. Compiling them took a fifth of the time of all
 * tests; so a process compiles each but once, and the next files take the code that is there.
 */
function keepCompiledCode() {
  const { SourceTextModule, compileFunction } = vm;
  const modules = new Map();
  const functions = new Map();
  const dataOf = (known, name, code) => {
    const found = known.get(name);
    return found?.code === code ? { cachedData: found.data } : undefined;
  };
  vm.SourceTextModule = new Proxy(SourceTextModule, {
    construct(target, [code, options]) {
      const name = options?.identifier;
      const data = dataOf(modules, name, code);
      if (data !== undefined) return new target(code, { ...options, ...data });
      const made = new target(code, options);
      if (name !== undefined) modules.set(name, { code, data: made.createCachedData() });
      return made;
    },
  });
  vm.compileFunction = (code, parameters, options) => {
    const name = options?.filename;
    const data = dataOf(functions, name, code);
    if (data !== undefined) return compileFunction(code, parameters, { ...options, ...data });
    const made = compileFunction(code, parameters, { ...options, produceCachedData: true });
    if (name !== undefined) functions.set(name, { code, data: made.cachedData });
    return made;
  };
}
