export { hashPassword } from "./access/passwords.js";
export { hashToken } from "./access/users-file.js";
