import { loadSettings, SECRET_SETTINGS, type Settings, sourceOfSetting } from "./environment.ts";
import { senderText } from "./mail.ts";
import { usd } from "../money.ts";
import { SETTING_GROUPS } from "./settings-text.ts";
import { witnessText } from "./witnesses.ts";

/** A setting as it is in force in a process. */
export interface SettingInForce {
  name: keyof Settings;
  /** Its value as text; null if it is not set, or if it is a secret. */
  value: string | null;
  /** A secret is set, and never shown. */
  isHidden: boolean;
  /** `environment`; the path of a file for a secret in `NAME_FILE`; `default`; `program` if the command has set it. */
  source: string;
  description: string;
}

/**
 * Returns all settings in force, by group, with where each value comes from. Values of secrets, and user names and
 * passwords in URLs, are left out.
 */
export function listSettingsInForce(
  settings: Settings,
  env?: NodeJS.ProcessEnv,
): { group: string; settings: SettingInForce[] }[] {
  const defaults = loadSettings({});
  return Object.entries(SETTING_GROUPS).map(([group, texts]) => ({
    group,
    settings: Object.entries(texts).map(([key, { description }]) => {
      const name = key as keyof Settings;
      const isSecret = (SECRET_SETTINGS as readonly string[]).includes(name);
      const text = textOf(settings, name);
      return {
        name,
        value: isSecret ? null : text,
        isHidden: isSecret && text !== null,
        source: sourceOfSetting(name, env) ?? (text === textOf(defaults, name) ? "default" : "program"),
        description: description.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1").replaceAll("`", ""),
      };
    }),
  }));
}

/** The value of a setting in the form in which it is set; null if it is not. */
function textOf(settings: Settings, name: keyof Settings): string | null {
  const { LOG_WITNESSES: witnesses, MAIL_FROM: sender } = settings;
  const value = {
    ...settings,
    LOG_WITNESSES: witnesses.map(witnessText),
    MAIL_FROM: sender === undefined ? undefined : senderText(sender),
  }[name];
  if (value === undefined) return null;
  if (typeof value === "boolean") return value ? "on" : "off";
  // amounts are the only such settings
  if (typeof value === "bigint") return usd(value);
  const text = Array.isArray(value) ? value.join(", ") : String(value);
  return text === "" ? null : text.replaceAll(/(\/\/)[^/\s]+@/g, "$1…@");
}
