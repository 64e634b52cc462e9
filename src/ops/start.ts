import { mailKeysOf } from "../mail/seal.ts";
import type { RequestListener } from "node:http";
import { openDevices } from "../accounts/identity/devices.ts";
import { type Identity, openIdentity } from "../accounts/identity/identity.ts";
import { redeemLink } from "../accounts/operators/link-store.ts";
import type { SharedParts } from "../serve/server.ts";
import { isOperator } from "../accounts/operators/operator-store.ts";
import { type Settings, usesHttps } from "../config/environment.ts";
import { openOps } from "./app.ts";
import type { OpsAction, OpsPage, OpsParts } from "./contract.ts";
import { actions, pages } from "./index.ts";
import { addAccountRoutes } from "./me/account-routes.ts";
import { addPublicRoutes, type PrintLink } from "./sign-in/public-routes.ts";
import { openOpsGuard } from "./sign-in/guard.ts";
import { SESSION_SECONDS } from "./sign-in/limits.ts";
import type { SignInParts } from "../frame/sign-in/guard.ts";

/** What `/ops` is opened with. */
export interface StartOps {
  parts: Omit<OpsParts, "mailKeys">;
  /** Past a transaction pooler. */
  directUrl: string;
  /** Signs cookies; the same in every process. */
  secret: string;
  settings: Pick<Settings, "PUBLIC_URL" | "TRUSTED_PROXIES" | "OPS_REQUIRE_TWO_FACTOR">;
  printLink: PrintLink;
  /** Pages and actions; all of them if not given. */
  lists?: { pages: readonly OpsPage[]; actions: readonly OpsAction[] };
}

/** The operators' view, before it is served. */
export interface Ops {
  base: "/ops";
  /** Returns the request handler, given the shared parts of its server. */
  listener: (shared: SharedParts) => RequestListener;
  close: () => Promise<void>;
}

/** Opens `/ops`. The server passes the shared parts to `listener`. */
export function startOps({ parts, directUrl, secret, settings, printLink, lists = { pages, actions } }: StartOps): Ops {
  const { sql, log } = parts;
  const isSecure = usesHttps(settings);
  const identity: Identity = openIdentity({
    databaseUrl: directUrl,
    secret,
    surface: "ops",
    isSecure,
    lastsSeconds: SESSION_SECONDS,
    mayBegin: (userId) => isOperator(sql, userId),
    redeemLink: (token) => redeemLink(sql, token),
    log,
  });
  return {
    base: "/ops",
    listener({ buckets, site }) {
      const devices = openDevices({ secret, surface: "ops", isSecure });
      const signIn: SignInParts = { surface: "ops", sql, identity, buckets, log, devices, site };
      return openOps({
        parts: { ...parts, mailKeys: mailKeysOf(secret, parts.settings.AUTH_SECRET_PREVIOUS) },
        guard: openOpsGuard(signIn),
        ...lists,
        addPublicRoutes: (app, made) => addPublicRoutes(app, made, { ...signIn, printLink }),
        addAccountRoutes: (app, made) =>
          addAccountRoutes(app, made, { ...signIn, mustHaveTwoFactor: settings.OPS_REQUIRE_TWO_FACTOR }),
        trustedProxies: settings.TRUSTED_PROXIES,
        isSecure,
        site,
      });
    },
    close: () => identity.close(),
  };
}
