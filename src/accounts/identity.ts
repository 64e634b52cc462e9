import { type BetterAuthPlugin, betterAuth } from "better-auth";
import { APIError, createAuthEndpoint } from "better-auth/api";
import { setSessionCookie } from "better-auth/cookies";
import { twoFactor } from "better-auth/plugins/two-factor";
import { z } from "zod";
import { openPgPool } from "../db/pg-pool.ts";
import type { Log } from "../log.ts";
import { hashPassword, isPassword, LONGEST_PASSWORD, SHORTEST_PASSWORD } from "./password.ts";

/** The header in which the library is told the address of whoever asks, as our own proxies' rules see it. */
const ADDRESS_HEADER = "x-roundhouse-address";
const CONNECTIONS = 5;

/** Where somebody signs in. A sign-in of one opens nothing at the other. */
export type IdentitySurface = "ops" | "console";

/** What knowing people is made of. */
export interface IdentityParts {
  /** Past a transaction pooler. */
  databaseUrl: string;
  /** Signs cookies and encrypts second factors; 32 characters or more, the same in every process. */
  secret: string;
  surface: IdentitySurface;
  /** Whether people reach us by https: cookies are then for https alone, and for this very host (`__Host-`). */
  isSecure: boolean;
  /** How long a sign-in lasts, however much it is used. */
  lastsSeconds: number;
  /** Whether somebody whose password was right may sign in here. */
  mayBegin(userId: string): Promise<boolean>;
  /** Uses up a one-time link; null where it is none, or no longer one. */
  redeemLink(token: string): Promise<string | null>;
  log: Log;
}

/** Who asks: what of a request the library has to know. */
export interface Asker {
  cookie: string;
  address: string;
  userAgent: string;
}

/** What the library answered. */
export interface IdentityAnswer {
  status: number;
  body: unknown;
  /** `Set-Cookie` headers to pass on. */
  cookies: string[];
}

/** Who people are: passwords, sign-ins and second factors, by way of better-auth. */
export interface Identity {
  /** Asks one of the library's own endpoints, such as `/sign-in/email`. */
  ask(path: string, body: object, asker: Asker): Promise<IdentityAnswer>;
  /** The sign-in that a Cookie header carries; null where it carries none that holds. */
  findSession(cookie: string): Promise<{ sessionId: string; userId: string } | null>;
  /** Whose second step is waited for, after a right password, by a Cookie header; null where none is. */
  findChallenged(cookie: string): Promise<string | null>;
  close(): Promise<void>;
}

/** Opens it. The library sees requests made by us alone: whoever calls has to have checked their origin and their number. */
export function openIdentity(parts: IdentityParts): Identity {
  const pool = openPgPool(parts.databaseUrl, { name: `identity ${parts.surface}`, schema: "auth", max: CONNECTIONS });
  const base = "http://roundhouse.internal";
  const auth = betterAuth({ ...identityOptions(parts, base), database: pool });
  return {
    async ask(path, body, { cookie, address, userAgent }) {
      const headers = { origin: base, "content-type": "application/json", "user-agent": userAgent, cookie };
      const response = await auth.handler(
        new Request(`${base}/auth${path}`, {
          method: "POST",
          headers: { ...headers, [ADDRESS_HEADER]: address },
          body: JSON.stringify(body),
        }),
      );
      const text = await response.text();
      const answer = text === "" ? null : (JSON.parse(text) as unknown);
      return { status: response.status, body: answer, cookies: response.headers.getSetCookie() };
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

const secondStepAnswer = z.looseObject({ twoFactorRedirect: z.literal(true) });

/** Whether a second step is asked for after a right password. */
export function wantsCode({ status, body }: IdentityAnswer): boolean {
  return status === 200 && secondStepAnswer.safeParse(body).success;
}

/** A Cookie header without the sign-in: with it the library takes the code for one of whoever is signed in already. */
export function withoutSession(cookie: string): string {
  return cookie
    .split(";")
    .filter((one) => !one.includes(".session_token="))
    .join(";");
}

/** How the library is set up; also what a test compares our tables with. */
export function identityOptions(
  { secret, surface, isSecure, lastsSeconds, mayBegin, redeemLink, log }: Omit<IdentityParts, "databaseUrl">,
  base: string,
) {
  return {
    appName: "Roundhouse",
    baseURL: base,
    basePath: "/auth",
    secret,
    trustedOrigins: [base],
    telemetry: { enabled: false },
    logger: { level: "warn" as const, log: (_: string, message: string) => log.debug(`identity: ${message}`) },
    emailAndPassword: {
      enabled: true,
      disableSignUp: true,
      minPasswordLength: SHORTEST_PASSWORD,
      maxPasswordLength: LONGEST_PASSWORD,
      password: {
        hash: hashPassword,
        verify: ({ hash, password }: { hash: string; password: string }) => isPassword(password, hash),
      },
    },
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
        expiresAt: "expires_at",
        createdAt: "created_at",
        updatedAt: "updated_at",
        ipAddress: "ip_address",
        userAgent: "user_agent",
        userId: "user_id",
      },
      additionalFields: {
        surface: { type: "string" as const, required: true, input: false, defaultValue: surface },
        byLink: {
          type: "boolean" as const,
          required: true,
          input: false,
          defaultValue: false,
          fieldName: "by_link",
        },
      },
    },
    user: {
      modelName: "users",
      fields: { emailVerified: "email_verified", createdAt: "created_at", updatedAt: "updated_at" },
      additionalFields: {
        surface: { type: "string" as const, required: true, input: false, defaultValue: surface },
      },
    },
    account: {
      modelName: "accounts",
      fields: {
        accountId: "account_id",
        providerId: "provider_id",
        userId: "user_id",
        accessToken: "access_token",
        refreshToken: "refresh_token",
        idToken: "id_token",
        accessTokenExpiresAt: "access_token_expires_at",
        refreshTokenExpiresAt: "refresh_token_expires_at",
        createdAt: "created_at",
        updatedAt: "updated_at",
      },
    },
    verification: {
      modelName: "verifications",
      fields: { expiresAt: "expires_at", createdAt: "created_at", updatedAt: "updated_at" },
      additionalFields: {
        surface: { type: "string" as const, required: true, input: false, defaultValue: surface },
      },
    },
    databaseHooks: {
      session: {
        create: {
          before: async ({ userId }: { userId: string }) => {
            // the same answer as to a wrong password: nobody learns which addresses are known here
            if (!(await mayBegin(userId))) throw new APIError("UNAUTHORIZED", { code: "INVALID_EMAIL_OR_PASSWORD" });
          },
        },
      },
    },
    plugins: [
      twoFactor({
        issuer: "Roundhouse",
        schema: {
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
        },
      }),
      oneTimeLink(redeemLink),
      secondStep,
    ],
  };
}

/** Knowing whose second step is waited for before it is done, so that tries are counted and written down by person. */
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

/** Signing in with a link that was printed where the service runs. */
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
