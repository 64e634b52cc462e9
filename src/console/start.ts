import type { RequestListener } from "node:http";
import { openDevices } from "../accounts/identity/devices.ts";
import { type Identity, openIdentity } from "../accounts/identity/identity.ts";
import { redeemFirstSignIn } from "../accounts/holders/sign-up.ts";
import { isHolder } from "../accounts/holders/person-store.ts";
import type { SharedParts } from "../serve/server.ts";
import { mailKeyOf } from "../mail/seal.ts";
import { usesHttps } from "../config/environment.ts";
import { openConsole } from "./app.ts";
import type { ConsoleAction, ConsolePage, ConsoleParts } from "./contract.ts";
import { actions, pages } from "./index.ts";
import { addPublicRoutes } from "./sign-in/public-routes.ts";
import { openConsoleGuard } from "./sign-in/guard.ts";
import type { SignInParts } from "../frame/sign-in/guard.ts";
import { SESSION_SECONDS } from "./sign-in/limits.ts";
import { addAccountRoutes } from "./security/account-routes.ts";

/** What `/console` is opened with. */
export interface StartConsole {
  parts: Omit<ConsoleParts, "buckets" | "site" | "ownUrl" | "mailKey" | "isDemo">;
  /** See {@link ConsoleParts}; false if not given. */
  isDemo?: boolean;
  /** A direct connection, not through a transaction pooler. */
  directUrl: string;
  /** Signs cookies; the same in every process. */
  secret: string;
  /** Pages and actions; all of them if not given. */
  lists?: { pages: readonly ConsolePage[]; actions: readonly ConsoleAction[] };
}

/** The console before a server mounts it. */
export interface Console {
  base: "/console";
  /** The request listener, given the shared parts of the server. */
  listener: (shared: SharedParts) => RequestListener;
  close: () => Promise<void>;
}

/** Opens `/console`; the server passes the rest to `listener`. */
export function startConsole({
  parts,
  directUrl,
  secret,
  isDemo = false,
  lists = { pages, actions },
}: StartConsole): Console {
  const { sql, settings, log } = parts;
  const isSecure = usesHttps(settings);
  const identity: Identity = openIdentity({
    databaseUrl: directUrl,
    secret,
    surface: "console",
    isSecure,
    lastsSeconds: SESSION_SECONDS,
    mayBegin: (userId) => isHolder(sql, userId),
    redeemLink: (token) => redeemFirstSignIn(sql, token),
    log,
  });
  return {
    base: "/console",
    listener({ buckets, site, ownUrl }) {
      const devices = openDevices({ secret, surface: "console", isSecure });
      const signIn: SignInParts = { surface: "console", sql, identity, buckets, log, devices, site };
      return openConsole({
        parts: { ...parts, buckets, site, ownUrl, mailKey: mailKeyOf(secret), isDemo },
        guard: openConsoleGuard(signIn),
        ...lists,
        addPublicRoutes: (app, made) => addPublicRoutes(app, made, signIn),
        addAccountRoutes: (app, made) => addAccountRoutes(app, made, signIn),
        trustedProxies: settings.TRUSTED_PROXIES,
        isSecure,
      });
    },
    close: () => identity.close(),
  };
}
