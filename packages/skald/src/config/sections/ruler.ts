import { rulerKeys } from "@skald/ruler/config";
import { field } from "@skald/runtime/config";
import { objectStoreFields } from "./object-store-block.js";
import { anyStore, azureBlock, gcsBlock, s3Block } from "./object-stores.js";

const sameBucket = "rules are kept in the bucket of storage_config";

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
  s3: s3Block("ruler.storage.", sameBucket),
  gcs: gcsBlock("ruler.storage."),
  azure: azureBlock("ruler.storage."),
  swift: anyStore("Swift"),
  cos: anyStore("IBM Cloud"),
  bos: anyStore("Baidu Cloud"),
  alibabacloud: anyStore("Alibaba Cloud"),
});

/** `ruler`: alerts and recording rules. */
export const rulerConfig = field.section(
  "Evaluates rules.",
  { ...rulerKeys, storage },
  { ignored: { alertmanager_client_config: "use alertmanager_client instead" } },
);

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
  ...objectStoreFields("ruler-storage", sameBucket),
});
