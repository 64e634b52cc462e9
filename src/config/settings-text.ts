import type { Settings } from "./environment.ts";

/** A setting as docs/settings.md and .env.example describe it. */
export interface SettingText {
  /** What applies if it is not set; null if that is the literal default of the schema. */
  fallback: string | null;
  description: string;
}

const literal = (description: string): SettingText => ({ fallback: null, description });
const none = (description: string): SettingText => ({ fallback: "none", description });
const off = (description: string): SettingText => ({
  fallback: "off",
  description: `${description} (\`1\` or \`on\`)`,
});
const other = (fallback: string, description: string): SettingText => ({ fallback, description });

/** Every setting with its description, in groups. The type makes sure that none is missing. */
export const SETTING_GROUPS = {
  "Servers and folders": {
    DATABASE_URL: other(
      "with `up` a private server in `DATA_DIR`",
      "PostgreSQL 15 or newer: `postgres://user:password@host:5432/name`; required by `api`, `worker` and `migrate`",
    ),
    DATABASE_DIRECT_URL: other(
      "`DATABASE_URL`",
      "the same database without a pooler, for LISTEN, migrations, sign-ins and long commands; required if `DATABASE_URL` leads to a transaction pooler",
    ),
    DATABASE_READ_URL: none(
      "a streaming replica: an `api` reads what is published from it, and its lag is part of `X-Data-Age`; all else is read and written in `DATABASE_URL`",
    ),
    REDIS_URL: other(
      "with `up` a private server in `DATA_DIR`",
      "`redis://` or `rediss://`; a Redis Cluster by some of its nodes: `redis+cluster://:password@a:6379,b:6379` or `rediss+cluster://`; a master by its sentinels: `redis+sentinel://:password@a,b,c/name` or `rediss+sentinel://`, with `?sentinel_password=` if they need one. Required by `worker`; an `api` without it counts bursts and sign-in attempts alone",
    ),
    DATA_DIR: literal(
      "private servers, their passwords (mode 0600), `run.json`, and the rounds of an import while it runs",
    ),
    HOST: literal("the address to listen on; anything but a loopback address serves other machines"),
    PORT: literal("port of `up` and `api`; 0 takes any free port"),
    WORKER_PORT: literal("port on which a separate `worker` serves health and metrics"),
    DRAIN_SECONDS: literal("how long an `api` still responds after SIGTERM, while its `/readyz` returns 503; 0 to 300"),
    PUBLIC_URL: other(
      "its own address",
      "the origin of links in error messages and mails, such as `https://rounds.example`, without a path; with https, cookies are `Secure` and `__Host-`; the same for `api` and `worker`",
    ),
    TRUSTED_PROXIES: none(
      "proxies whose `X-Forwarded-For` is believed: addresses or networks (`10.0.0.0/8`), separated by commas",
    ),
    LOG_LEVEL: literal(
      "`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`; `up` writes warnings only unless it is set",
    ),
    OTEL_EXPORTER_OTLP_ENDPOINT: none(
      "a collector that gets traces by OTLP over HTTP, such as `http://127.0.0.1:4318`",
    ),
    METRICS_TOKEN: none(
      "bearer token of `/metrics`, 16 characters or more; required unless the instance serves only this machine",
    ),
  },
  "Houses and rounds": {
    HOUSES_FILE: literal("the houses and tables, see [houses](houses.md)"),
    LIVE_WINDOW_SECONDS: literal("a house is live while its newest polled round is younger; 1 to 86400"),
    BUFFER_ROUNDS: literal("recent rounds per table in memory, which `/rounds` lists; 1 to 10000"),
    PAYLOAD_RETENTION_HOURS: literal(
      "how long payloads are kept after the end of their UTC day, 1 to 8784; a day with unread payloads is kept until they are read",
    ),
    ALLOW_PRIVATE_HOUSES: off("houses with `private: true` may have private addresses and http"),
    HOUSE_NAME_SERVERS: other(
      "those of the machine",
      "name servers for the addresses of houses: `9.9.9.9` or `[2620:fe::fe]:53`, separated by commas; names that only this machine knows are then not found",
    ),
    HOUSE_SECRETS_DIR: none(
      "a folder with one file per `${VAR}` of the houses file; a changed file counts from the next poll",
    ),
    DEMO_HOUSE_URL: other("started with `up`", "a demo house that runs elsewhere"),
  },
  "Sign-in and people": {
    AUTH_SECRET: other(
      "kept in `DATA_DIR/auth-secret`",
      "signs cookies, encrypts second factors and links in mails, and keys ETags: 32 characters or more (`openssl rand -base64 33`), the same in every `api` and `worker`; see [changing secrets](security.md#changing-secrets)",
    ),
    AUTH_SECRET_PREVIOUS: none(
      "the previous `AUTH_SECRET`: at the start of an `api`, second factors are encrypted again with the new one; mails that wait are still sent",
    ),
    OPS_REQUIRE_TWO_FACTOR: off("every member of staff needs a second factor"),
    OPERATOR_NAME: none("who runs this service, shown with the terms"),
    HELPLINES_FILE: none("plain text for `/responsible-gambling`: `#` starts a heading, `-` an item; at most 32 KiB"),
  },
  Mail: {
    SMTP_URL: none(
      "the mail server, `smtp://user:password@mail.example:587` or `smtps://…`. TLS is used if it is offered, and is required if a password goes to another machine (`?requireTLS=false` turns that off). The same for `api` and `worker`",
    ),
    MAIL_FROM: other("`no-reply@` the host of `PUBLIC_URL`", "the sender, such as `Rounds <hello@example.com>`"),
    STAFF_WEBHOOK_URL: none(
      'an address that gets `{"text": "…"}` by POST when alerts open or close, as incoming webhooks of Slack, Mattermost and Rocket.Chat take it; it counts as a secret',
    ),
    ALERT_EMAIL: none("up to 10 addresses, separated by commas, that get a mail when alerts open or close"),
  },
  "The public log": {
    LOG_DIR: other(
      "`log` in `DATA_DIR`",
      "key (mode 0600) and newest checkpoint of the log; workers on several machines share it",
    ),
    LOG_WITNESSES: none("witnesses that cosign it: verifier key, space, address; separated by commas"),
  },
  "Bank transfers": {
    BANK_BENEFICIARY: none("holder of the account; bank transfer is offered if this and `BANK_IBAN` are set"),
    BANK_IBAN: none("the account"),
    BANK_BIC: none("shown with it"),
    BANK_NAME: none("shown with it"),
    BANK_CURRENCIES: other("`USD,EUR`", "currencies that the account accepts"),
    BANK_ONE_PERSON: off("one person may both match and approve a transfer; every page about bank transfers shows it"),
  },
  USDT: {
    USDT_XPUB: none("extended public key (`m/44'/60'/0'`, or `…/0`) of the wallet; permanent: another one is refused"),
    USDT_RPC_URLS: none(
      "one or two JSON-RPC endpoints, separated by a comma; two must agree before a deposit is credited",
    ),
    USDT_CHAIN: literal("`ethereum`, `polygon`, `arbitrum`, `bsc`, or `custom` with the next three"),
    USDT_CHAIN_ID: none("chain id of `custom`"),
    USDT_TOKEN: none("token contract of `custom`"),
    USDT_DECIMALS: none("decimals of the token of `custom`"),
    USDT_CONFIRMATIONS: other(
      "12, 128, 240, 30 in the order of the chains; `custom` 12",
      "blocks that confirm a deposit; one that the chain reports as final is credited earlier",
    ),
    USDT_MIN: other("`5`", "smallest deposit in USD that is credited alone; smaller ones wait for more"),
  },
  "Binance Pay": {
    BINANCE_PAY_KEY: none("key of the merchant; Binance Pay is offered if this and the secret are set"),
    BINANCE_PAY_SECRET: none("secret of the merchant"),
    BINANCE_PAY_URL: literal("where orders are made and looked up"),
  },
} satisfies Record<string, Record<string, SettingText>>;

type Described = {
  [Group in keyof typeof SETTING_GROUPS]: keyof (typeof SETTING_GROUPS)[Group];
}[keyof typeof SETTING_GROUPS];

/** Compiles only if exactly the settings that exist are described. */
export const DESCRIBES_ALL: [keyof Settings] extends [Described]
  ? [Described] extends [keyof Settings]
    ? true
    : never
  : never = true;
