import vm from "node:vm";
import { TestEnvironment } from "jest-environment-node";

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
