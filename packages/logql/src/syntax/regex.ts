import { compileRegex } from "@skald/model";
import { checkRegexesWith } from "./check.js";

// From now on the parser refuses expressions that RE2 refuses.
checkRegexesWith(compileRegex);
