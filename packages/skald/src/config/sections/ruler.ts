import { rulerKeys } from "@skald/ruler/config";
import { field } from "@skald/runtime/config";
import { directoryBlock } from "./object-stores.js";

const storage = field.section("Where rules are stored.", {
  type: field.choice(
    "",
    ["", "local", "s3", "gcs", "azure", "swift", "cos", "bos", "alibabacloud"],
    "kind of store; default: that of the data",
    "ruler.storage.type",
  ),
  local: field.section("A directory.", {
    directory: field.text(
      "",
      "the directory; what is changed over the API is written there too",
      "ruler.storage.local.directory",
    ),
  }),
});

/** `ruler`: alerts and recording rules. */
export const rulerConfig = field.section("Evaluates rules.", { ...rulerKeys, storage });

/** `ruler_storage`: where rules are stored, in the newer form. */
export const rulerStorageConfig = field.section("Where rules are stored, in the newer form.", {
  backend: field.choice(
    "filesystem",
    ["filesystem", "local", "s3"],
    "kind of store; s3: the bucket of storage_config",
    "ruler-storage.backend",
  ),
  local: field.section("A directory.", {
    directory: field.text("", "the directory", "ruler-storage.local.directory"),
  }),
  filesystem: directoryBlock("ruler-storage"),
});
