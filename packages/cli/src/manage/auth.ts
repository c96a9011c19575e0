import { randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import { hashPassword, hashToken } from "@skald/transport/access";
import { command, exits } from "../shell/command.js";

const tokenBytes = 32;

export const authHash = command({
  args: "",
  says: "Reads a password, one line, from stdin and writes what `auth.users_file` has for it.",
  flags: {},
  run: async (_, { stdin, stdout, stderr }) => {
    const password = (await text(stdin)).replace(/\r?\n$/, "");
    if (password === "" || /[\r\n]/.test(password)) {
      stderr.write("a password is one line, and not empty\n");
      return exits.usage;
    }
    stdout.write(`${await hashPassword(password)}\n`);
    return exits.done;
  },
});

export const authToken = command({
  args: "",
  says: "Writes a new bearer token, and what `auth.users_file` has for it.",
  flags: {},
  run: async (_, { stdout }) => {
    const token = randomBytes(tokenBytes).toString("base64url");
    stdout.write(`token: ${token}\nusers file: ${hashToken(token)}\n`);
    return exits.done;
  },
});
