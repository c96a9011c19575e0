import { removeFolders } from "../../packages/test/dist/testing/server.js";

/**
 * Runs a comparison, which fills the table and counts the differences of what it is given, and prints both. Ends the process: with
 * status 1 when an answer differs.
 */
export async function runComparison(compare) {
  const found = { table: {}, differences: 0 };
  try {
    await compare(found);
  } finally {
    await removeFolders();
  }
  console.table(found.table);
  const { differences } = found;
  console.log(differences === 0 ? "all answers are the same" : `${differences} answers differ`);
  process.exit(differences === 0 ? 0 : 1);
}
