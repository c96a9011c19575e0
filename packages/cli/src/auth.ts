import { randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import { hashPassword, hashToken } from "@skald/transport/access";

interface Streams {
  readonly stdin: NodeJS.ReadableStream;
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
}

const usage = `Usage: skald auth hash     reads a password from the standard input, and prints what the users file has for it
       skald auth token    prints a new bearer token, and what the users file has for it
`;
const exitCodes = { good: 0, failed: 2 } as const;
const tokenBytes = 32;

/** Runs `skald auth`; resolves with the exit code. */
export async function runAuth(argv: readonly string[], streams: Streams): Promise<number> {
  const { stdin, stdout, stderr } = streams;
  const [what, ...rest] = argv;
  const isHelp = /^--?h(elp)?$/.test(what ?? "");
  if (rest.length > 0 || isHelp || (what !== "hash" && what !== "token")) {
    (isHelp ? stdout : stderr).write(usage);
    return isHelp ? exitCodes.good : exitCodes.failed;
  }
  if (what === "token") {
    const token = randomBytes(tokenBytes).toString("base64url");
    stdout.write(`token: ${token}\nusers file: ${hashToken(token)}\n`);
    return exitCodes.good;
  }
  const password = (await text(stdin)).replace(/\r?\n$/, "");
  if (password === "" || /[\r\n]/.test(password)) {
    stderr.write(`a password is one line, and not empty\n${usage}`);
    return exitCodes.failed;
  }
  stdout.write(`${await hashPassword(password)}\n`);
  return exitCodes.good;
}
