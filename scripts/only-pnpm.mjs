// `npm install` cannot read a pnpm workspace: stop it with the command that works.
if (!(process.env.npm_config_user_agent ?? "").startsWith("pnpm/")) {
  console.error(
    "this workspace is installed by pnpm: run `npm start` or `npm test`, they fetch it",
  );
  process.exit(1);
}
