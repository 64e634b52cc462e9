import { type BetterAuthPlugin, betterAuth } from "better-auth";
import { APIError, createAuthEndpoint } from "better-auth/api";
import { setSessionCookie } from "better-auth/cookies";
import { twoFactor } from "better-auth/plugins/two-factor";
import { z } from "zod";
import { openPgPool } from "../../db/connections/pg-pool.ts";
import type { Log } from "../../log.ts";
import { admitted, LONGEST_PASSWORD, refuseFlood, SHORTEST_PASSWORD } from "./password.ts";

/** The header that passes the client's address to the library, resolved by our proxy rules. */
const ADDRESS_HEADER = "x-roundhouse-address";
const CONNECTIONS = 5;

/** The part of the service that a session is for. It is not valid for the other part. */
export type IdentitySurface = "ops" | "console";

/** Options of {@link openIdentity}. */
export interface IdentityParts {
  /** A direct connection, not through a transaction pooler. */
  databaseUrl: string;
  /** Signs cookies and encrypts second factors; 32 characters or more, the same in every process. */
  secret: string;
  surface: IdentitySurface;
  /** Whether the public address is https: cookies are then `Secure` and bound to the host (`__Host-`). */
  isSecure: boolean;
  /** Lifetime of a session, even if it is used. */
  lastsSeconds: number;
  /** Whether a person with the right password may sign in here. */
  mayBegin(userId: string): Promise<boolean>;
  /** Redeems a one-time link and returns the user id; null if it is unknown, used or expired. */
  redeemLink(token: string): Promise<string | null>;
  log: Log;
}

/** The parts of a request that the library needs. */
export interface Requester {
  cookie: string;
  address: string;
  userAgent: string;
}

/** The library's response. */
export interface IdentityResponse {
  status: number;
  body: unknown;
  /** `Set-Cookie` headers to pass on. */
  cookies: string[];
}

/** Endpoints that check a password. */
const HASHING = new Set([
  "/sign-in/email",
  "/two-factor/enable",
  "/two-factor/disable",
  "/two-factor/generate-backup-codes",
]);

/** Passwords, sessions and second factors, by better-auth. */
export interface Identity {
  /** Calls an endpoint of the library, such as `/sign-in/email`. @throws TooManyPasswordsError */
  ask(path: string, body: object, requester: Requester): Promise<IdentityResponse>;
  /** The session of a Cookie header; null if there is no valid one. */
  findSession(cookie: string): Promise<{ sessionId: string; userId: string } | null>;
  /** The user id of a pending second step by a Cookie header; null if there is none. */
  findChallenged(cookie: string): Promise<string | null>;
  close(): Promise<void>;
}

/** Opens the identity service. The caller checks origin and rate limits first: the library checks neither. */
export function openIdentity(parts: IdentityParts): Identity {
  const pool = openPgPool(parts.databaseUrl, { name: `identity ${parts.surface}`, schema: "auth", max: CONNECTIONS });
  const base = "http://roundhouse.internal";
  const auth = betterAuth({ ...identityOptions(parts, base), database: pool });
  return {
    async ask(path, body, { address, userAgent, ...sent }) {
      if (HASHING.has(path)) refuseFlood();
      const cookie = without(sent.cookie, ".dont_remember"); // with it a session would last for 24 hours
      const headers = { origin: base, "content-type": "application/json", "user-agent": userAgent, cookie };
      const response = await auth.handler(
        new Request(`${base}/auth${path}`, {
          method: "POST",
          headers: { ...headers, [ADDRESS_HEADER]: address },
          body: JSON.stringify(body),
        }),
      );
      const text = await response.text();
      const parsed = text === "" ? null : (JSON.parse(text) as unknown);
      return { status: response.status, body: parsed, cookies: response.headers.getSetCookie() };
    },
    async findSession(cookie) {
      const found = await auth.api.getSession({ headers: new Headers({ cookie }) });
      return found === null ? null : { sessionId: found.session.id, userId: found.session.userId };
    },
    async findChallenged(cookie) {
      return auth.api.findChallenged({ headers: new Headers({ cookie }) });
    },
    close: () => pool.end(),
  };
}

const secondStepResponse = z.looseObject({ twoFactorRedirect: z.literal(true) });

/** Whether the response asks for a second step. */
export function needsCode({ status, body }: IdentityResponse): boolean {
  return status === 200 && secondStepResponse.safeParse(body).success;
}

/** A Cookie header without the session: with it, the library checks the code for the signed-in person. */
export function withoutSession(cookie: string): string {
  return without(cookie, ".session_token");
}

/**
 * A Cookie header without a pending sign-in: with it, once the session has ended, the library checks the code for the person
 * of that sign-in, who may be another one.
 */
export function withoutChallenge(cookie: string): string {
  return without(cookie, ".two_factor");
}

function without(cookie: string, name: string): string {
  return cookie
    .split(";")
    .filter((one) => !(one.split("=", 1)[0] ?? "").trim().endsWith(name)) // the library ignores spaces around a name, too
    .join(";");
}

const PASSWORDS = {
  enabled: true,
  disableSignUp: true,
  minPasswordLength: SHORTEST_PASSWORD,
  maxPasswordLength: LONGEST_PASSWORD,
  password: admitted,
};

/** The library's names of fields and our columns. */
const TIMES = { createdAt: "created_at", updatedAt: "updated_at" };
const ACCOUNT_COLUMNS = {
  ...TIMES,
  accountId: "account_id",
  providerId: "provider_id",
  userId: "user_id",
  accessToken: "access_token",
  refreshToken: "refresh_token",
  idToken: "id_token",
  accessTokenExpiresAt: "access_token_expires_at",
  refreshTokenExpiresAt: "refresh_token_expires_at",
};
const TWO_FACTOR_SCHEMA = {
  user: { fields: { twoFactorEnabled: "two_factor_enabled" } },
  twoFactor: {
    modelName: "two_factors",
    fields: {
      backupCodes: "backup_codes",
      userId: "user_id",
      failedVerificationCount: "failed_verification_count",
      lockedUntil: "locked_until",
    },
  },
};

/** The library's options; a test compares our tables with them. */
export function identityOptions(
  { secret, surface, isSecure, lastsSeconds, mayBegin, redeemLink, log }: Omit<IdentityParts, "databaseUrl">,
  base: string,
) {
  const ours = { surface: { type: "string" as const, required: true, input: false, defaultValue: surface } };
  return {
    appName: "Roundhouse",
    baseURL: base,
    basePath: "/auth",
    secret,
    trustedOrigins: [base],
    telemetry: { enabled: false },
    logger: { level: "warn" as const, log: (_: string, message: string) => log.debug(`identity: ${message}`) },
    emailAndPassword: PASSWORDS,
    // Requests come from our own handlers, which count tries in buckets that all processes share.
    rateLimit: { enabled: false },
    advanced: {
      useSecureCookies: false, // it would add __Secure-; see cookiePrefix
      cookiePrefix: `${isSecure ? "__Host-" : ""}rh_${surface}`,
      defaultCookieAttributes: { secure: isSecure, httpOnly: true, sameSite: "lax" as const, path: "/" },
      ipAddress: { ipAddressHeaders: [ADDRESS_HEADER] },
    },
    session: {
      modelName: "sessions",
      expiresIn: lastsSeconds,
      disableSessionRefresh: true,
      fields: {
        ...TIMES,
        expiresAt: "expires_at",
        ipAddress: "ip_address",
        userAgent: "user_agent",
        userId: "user_id",
      },
      additionalFields: {
        ...ours,
        byLink: { type: "boolean" as const, required: true, input: false, defaultValue: false, fieldName: "by_link" },
      },
    },
    user: { modelName: "users", fields: { ...TIMES, emailVerified: "email_verified" }, additionalFields: ours },
    account: { modelName: "accounts", fields: ACCOUNT_COLUMNS },
    verification: { modelName: "verifications", fields: { ...TIMES, expiresAt: "expires_at" }, additionalFields: ours },
    databaseHooks: { session: { create: { before: refuseUnless(mayBegin) } } },
    plugins: [
      twoFactor({
        issuer: "Roundhouse",
        // it would lock out a device that is known; wrong codes are counted in our buckets
        accountLockout: { enabled: false },
        schema: TWO_FACTOR_SCHEMA,
      }),
      oneTimeLink(redeemLink),
      secondStep,
    ],
  };
}

function refuseUnless(mayBegin: (userId: string) => Promise<boolean>) {
  return async ({ userId }: { userId: string }) => {
    // the same response as to a wrong password, so that it does not reveal registered addresses
    if (!(await mayBegin(userId))) throw new APIError("UNAUTHORIZED", { code: "INVALID_EMAIL_OR_PASSWORD" });
  };
}

/** Finds the person of a pending second step, so that attempts are counted and logged by person. */
const secondStep = {
  id: "second-step",
  endpoints: {
    findChallenged: createAuthEndpoint.serverOnly({ method: "GET" }, async (ctx): Promise<string | null> => {
      const { name } = ctx.context.createAuthCookie("two_factor");
      const challenge = await ctx.getSignedCookie(name, ctx.context.secret);
      if (typeof challenge !== "string") return null;
      const waiting = await ctx.context.internalAdapter.findVerificationValue(challenge);
      return waiting === null || waiting.expiresAt < new Date() ? null : waiting.value;
    }),
  },
} satisfies BetterAuthPlugin;

/** Sign-in with a link that was printed on the server. */
function oneTimeLink(redeemLink: (token: string) => Promise<string | null>): BetterAuthPlugin {
  return {
    id: "one-time-link",
    endpoints: {
      signInByLink: createAuthEndpoint(
        "/sign-in/link",
        { method: "POST", body: z.object({ token: z.string().min(1).max(200) }) },
        async (ctx) => {
          const userId = await redeemLink(ctx.body.token);
          const user = userId === null ? null : await ctx.context.internalAdapter.findUserById(userId);
          if (user === null) throw new APIError("UNAUTHORIZED", { code: "INVALID_LINK" });
          const session = await ctx.context.internalAdapter.createSession(user.id, false, { byLink: true }, true);
          await setSessionCookie(ctx, { session, user });
          return ctx.json({ ok: true });
        },
      ),
    },
  };
}
