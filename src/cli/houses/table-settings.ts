import { variablesOf } from "../../config/environment.ts";
import type { Sql } from "../../db/client.ts";
import { UsageError } from "../../errors.ts";
import { settingsOf } from "../../houses/house.ts";
import type { TableSettings } from "../../houses/settings/settings.ts";
import { loadHouseToRead } from "../../houses/store.ts";

/**
 * The settings of the table of this name, `house/game/market`, for work without requests to the house.
 * @throws UsageError if the table is no longer in the houses file.
 */
export async function findTableSettings(sql: Sql, name: string): Promise<TableSettings> {
  const [houseId = "", game = "", market = ""] = name.split("/");
  const house = await loadHouseToRead(sql, variablesOf(), houseId);
  const settings = house === null ? null : settingsOf(house, { game, market });
  if (settings !== null) return settings;
  throw new UsageError(`${name} left the houses file; put it back, with \`enabled: false\` if it is not to be polled`);
}
