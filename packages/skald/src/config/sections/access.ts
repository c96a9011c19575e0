import { field } from "@skald/runtime/config";

const inFront = "is not built; let a proxy in front check who may read what, and remove";

/** `lbac`: who may see which streams. */
export const lbacConfig = field.section("Who may see which streams.", {
  enabled: field.toggle(false, "look at the header X-Prom-Label-Policy", "lbac.enabled", {
    refused: `access by labels ${inFront}`,
  }),
});

/** `auth`: access tokens. */
export const authConfig = field.section(
  "Access tokens of an enterprise product.",
  {
    type: field.text("", "enterprise: tokens are checked", undefined, {
      refused: `a check of access tokens ${inFront}`,
      holds: (type) => type !== "enterprise",
    }),
  },
  { ignored: { "*": "is a key of an enterprise product" } },
);
