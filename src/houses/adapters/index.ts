import type { Adapter } from "../contract.ts";
import type { TableSettings } from "../settings.ts";
import json from "./json.ts";

/** All adapters by the name houses.yaml gives them. */
export const adapters: Readonly<Record<TableSettings["adapter"], Adapter>> = { json };
