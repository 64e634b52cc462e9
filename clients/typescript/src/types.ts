// Made by `npm run types`. Changes here are lost.
export interface paths {
    "/api/v1/games": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The tables of your plan, and whether each is live
         * @description One entry per table. It has exactly these eight fields.
         */
        get: operations["getGames"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/rounds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The newest rounds of each table, newest first
         * @description Ordered by round id if a table's ids are consecutive, else by the time of the round. Older pages are not available: store what you need.
         */
        get: operations["getRounds"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/forecasts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Probabilities of the next color and of windows, each with its baseline
         * @description A forecast is fixed before its round can be known, never changed, and always counted in `/accuracy`. If no forecast is possible, `state` gives the reason; the response is still a 200.
         */
        get: operations["getForecasts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/readings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The current behavior of each table, as text and as data
         * @description Every sentence is made from the listed facts. A reading describes past rounds and recommends nothing; past rounds change the odds only if the reading states it.
         */
        get: operations["getReadings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/accuracy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Measured accuracy of the forecasts, per feature and period
         * @description One row per table, feature and model. Every forecast ever issued counts. Figures without a sample are null, never 0.
         */
        get: operations["getAccuracy"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Your calls today and this month, and what remains
         * @description Free of charge, and available when the quota is used up. It includes every 200 sent before.
         */
        get: operations["getUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether this process serves
         * @description For liveness probes. It queries neither PostgreSQL nor Redis; `/readyz` does.
         */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether this process can accept work
         * @description For load balancers. A 503 names each failed check in `problems`.
         */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * This document
         * @description OpenAPI 3.1. It changes only with the version. Send its ETag in `If-None-Match` to get a 304.
         */
        get: operations["getDocument"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description A time in UTC with seven digits after the second; such texts sort as their times do.
         * @example 2026-11-21T04:00:12.1234560Z
         */
        Timestamp: string;
        Health: {
            /**
             * @description This process serves.
             * @constant
             */
            ok: true;
            /** @description What runs. */
            version: string;
        };
        Readiness: {
            /** @description Whether this process can accept work. */
            ok: boolean;
            /** @description The result of each check. */
            checks: {
                /** @description PostgreSQL responds. */
                postgres: boolean;
                /** @description Redis responds. */
                redis: boolean;
                /** @description The schema is the one that this version needs. */
                migrations: boolean;
                /** @description No house's next poll is late. */
                polling: boolean;
            };
            /** @description The details of each failed check, by its name. */
            problems?: {
                [key: string]: string;
            };
        };
        Games: {
            /**
             * @description Always true here; an error has false and a status other than 200.
             * @constant
             */
            ok: true;
            /**
             * @description The plan of the key.
             * @example Pro
             */
            plan: string;
            games: {
                /**
                 * @description The id of the house.
                 * @example bustabit
                 */
                house: string;
                /**
                 * @description The id of the game.
                 * @example crash
                 */
                game: string;
                /**
                 * @description The id of the market.
                 * @example global
                 */
                market: string;
                /** @description Whether a continuity notice applies to the table now. */
                continuity_notice: boolean;
                /** @description The text of the notice, for example about missing rounds or contradicting results. */
                continuity_text: string | null;
                /**
                 * @description `live`: a round of the house was received within the last minutes. `stale`: within the last hour. `offline`: none in the last hour, or the table is not polled. `paused`: the operator paused it.
                 * @enum {string}
                 */
                status: "live" | "stale" | "offline" | "paused";
                /** @description When the last round was received; null before the first. */
                last_round_at: components["schemas"]["Timestamp"] | null;
                /** @description Recent rounds in memory: the most that `/rounds` can list. */
                buffered_rounds: number;
            }[];
        };
        Rounds: {
            /**
             * @description Always true here; an error has false and a status other than 200.
             * @constant
             */
            ok: true;
            /**
             * @description The plan of the key.
             * @example Pro
             */
            plan: string;
            tables: {
                /**
                 * @description The id of the house.
                 * @example bustabit
                 */
                house: string;
                /**
                 * @description The id of the game.
                 * @example crash
                 */
                game: string;
                /**
                 * @description The id of the market.
                 * @example global
                 */
                market: string;
                /**
                 * @description `live`: a round of the house was received within the last minutes. `stale`: within the last hour. `offline`: none in the last hour, or the table is not polled. `paused`: the operator paused it.
                 * @enum {string}
                 */
                status: "live" | "stale" | "offline" | "paused";
                /** @description When the last round was received; null before the first. */
                last_round_at: components["schemas"]["Timestamp"] | null;
                /** @description Empty before the table's first round. */
                rounds: {
                    /** @description The house's id of the round, always text. */
                    round_id: string;
                    /** @description The multiplier at which the round ended, with two decimals. */
                    multiplier: number;
                    /** @description The band in which the multiplier falls. */
                    color: string;
                    /** @description The time that the house states; null if it states none. */
                    occurred_at: components["schemas"]["Timestamp"] | null;
                    /** @description When it was received here. */
                    received_at: components["schemas"]["Timestamp"];
                    /** @description Whether the multiplier follows from the hash that the house had committed to; null if it commits to none. */
                    verified: boolean | null;
                    /** @description Received after newer rounds, computed or imported: listed, but never used for forecasts. */
                    late: boolean;
                }[];
            }[];
        };
        Forecasts: {
            /**
             * @description Always true here; an error has false and a status other than 200.
             * @constant
             */
            ok: true;
            /**
             * @description The plan of the key.
             * @example Pro
             */
            plan: string;
            /**
             * @description Show it wherever you show the figures.
             * @constant
             */
            notice: "Information only. Rounds come from the house's random generator; no outcome is guaranteed. 18+.";
            forecasts: {
                /**
                 * @description The id of the house.
                 * @example bustabit
                 */
                house: string;
                /**
                 * @description The id of the game.
                 * @example crash
                 */
                game: string;
                /**
                 * @description The id of the market.
                 * @example global
                 */
                market: string;
                /**
                 * @description `ready`: all forecasts are current. `waiting`: none was issued after the newest round yet; open windows are still listed. `warming_up`: none was ever issued. `silent`: no round was received for minutes. `paused`: the operator paused the table. The last three have no probabilities.
                 * @enum {string}
                 */
                state: "ready" | "waiting" | "warming_up" | "silent" | "paused";
                /** @description When this entry was last written. */
                generated_at: components["schemas"]["Timestamp"];
                /** @description The newest replay that reproduced the live model's state; null before the first. */
                calibration: {
                    /** @description Counts the calibrations of the table. */
                    version: number;
                    /** @description The number of rounds in the calibration. */
                    rounds: number;
                    /** @description The time of the calibration. */
                    as_of: components["schemas"]["Timestamp"];
                } | null;
                /** @description The next round's color; null unless `ready`. */
                next_color: {
                    /** @description The id of this forecast in exports and proofs. */
                    forecast_id: string;
                    /** @description When it was issued, before its first round could be known. */
                    issued_at: components["schemas"]["Timestamp"];
                    /** @description The newest round known then; the forecast is about the rounds that follow. */
                    after_round_id: string;
                    /** @description The round it is about; null if ids are not consecutive and so not known in advance. */
                    target_round_id: string | null;
                    /** @description The model and its version. */
                    model: string;
                    /** @description By color, lowest band first; they sum to 1. */
                    probabilities: {
                        [key: string]: number;
                    };
                    /** @description Our long-run estimate at that time; no skill is claimed against it. */
                    baseline: {
                        [key: string]: number;
                    };
                    /** @description SHA-256 over the forecast and the hash of the previous forecast in the table's chain. */
                    hash: string;
                } | null;
                /** @description Open windows. */
                windows: {
                    /** @description `window:<color>:<target>`. */
                    feature: string;
                    /** @description The color, or one that counts as it, that is expected. */
                    color: string;
                    /** @description The intended probability of the window in percent, approximately: 50, 80 or 90. */
                    target: number;
                    /** @description The id of this forecast in exports and proofs. */
                    forecast_id: string;
                    /** @description When it was issued, before its first round could be known. */
                    issued_at: components["schemas"]["Timestamp"];
                    /** @description The newest round known then; the forecast is about the rounds that follow. */
                    after_round_id: string;
                    /** @description How many rounds after `after_round_id` the window spans. */
                    rounds: number;
                    /** @description The issued probability that the color is a result within these rounds. */
                    probability: number;
                    /** @description The same according to our long-run estimate: 1 − (1 − share)^rounds. */
                    baseline: number;
                    /** @description The current state of the window, for information. */
                    now: {
                        /** @description Rounds of the window that are not played yet. */
                        rounds_left: number;
                        /** @description The probability for the remaining rounds; null once the color was a result. */
                        probability: number | null;
                        /**
                         * @description Always false: only the issued probability is ever scored.
                         * @constant
                         */
                        scored: false;
                    };
                    /** @description The measured accuracy of this feature on this table; null before the first score. */
                    measured: {
                        /** @description The measured period. */
                        period: string;
                        /** @description Windows of this feature that were scored in it. */
                        sample_size: number;
                        /** @description The share in which the color was a result; null without a scored window. */
                        hit_rate: number | null;
                        /** @description Its 95 % Wilson interval. */
                        interval_95: number[] | null;
                    } | null;
                    /** @description SHA-256 over the forecast and the hash of the previous forecast in the table's chain. */
                    hash: string;
                }[];
            }[];
        };
        Readings: {
            /**
             * @description Always true here; an error has false and a status other than 200.
             * @constant
             */
            ok: true;
            /**
             * @description The plan of the key.
             * @example Pro
             */
            plan: string;
            /** @description Show it wherever you show the text; it has the same language. */
            notice: string;
            readings: {
                /**
                 * @description The id of the house.
                 * @example bustabit
                 */
                house: string;
                /**
                 * @description The id of the game.
                 * @example crash
                 */
                game: string;
                /**
                 * @description The id of the market.
                 * @example global
                 */
                market: string;
                /** @description When the reading was made. */
                generated_at: components["schemas"]["Timestamp"];
                /**
                 * @description The language of the text.
                 * @enum {string}
                 */
                lang: "en" | "es" | "pt";
                /** @description The reading. */
                text: string;
                /** @description Empty while too few rounds are known, or the table is silent or paused. */
                facts: {
                    /** @description The name of the fact; the color follows a colon, as in `gap:pink`. */
                    name: string;
                    /** @description The current value; null if it is unknown. */
                    value: number | null;
                    /** @description The usual value; null if there is none. */
                    expected: number | null;
                    /** @description The number of rounds behind it. */
                    rounds: number;
                    /** @description True for a value that chance alone gives once in a hundred; among many facts a few are always marked. */
                    unusual: boolean;
                }[];
                /** @description The number of rounds of the table that were examined. */
                based_on_rounds: number;
            }[];
        };
        Accuracy: {
            /**
             * @description Always true here; an error has false and a status other than 200.
             * @constant
             */
            ok: true;
            /**
             * @description The plan of the key.
             * @example Pro
             */
            plan: string;
            /**
             * @description Show it wherever you show the figures.
             * @constant
             */
            notice: "Information only. Rounds come from the house's random generator; no outcome is guaranteed. 18+.";
            accuracy: {
                /** @description `next_color` or `window:<color>:<target>`. */
                feature: string;
                /** @description The model and its version. */
                model: string;
                /**
                 * @description The id of the house.
                 * @example bustabit
                 */
                house: string;
                /** @description The id of the game; null with `scope=house`. */
                game: string | null;
                /** @description The id of the market; null with `scope=house`. */
                market: string | null;
                /** @description The requested period. */
                period: string;
                /** @description Its start: forecasts issued from here on. */
                period_start: components["schemas"]["Timestamp"];
                /** @description Its end: the end of the current hour or day. */
                period_end: components["schemas"]["Timestamp"];
                /** @description When the newest counted round was received; of a house, the time up to which all its tables are counted. */
                as_of: components["schemas"]["Timestamp"] | null;
                /** @description The id of that round; null for several tables. */
                as_of_round_id: string | null;
                /** @description Forecasts that were scored. */
                sample_size: number;
                /** @description How many were right. For `next_color`: the most probable color was the result; for a window: its color was a result within its rounds. */
                hits: number;
                /** @description hits / sample_size; null without a score. Compare it with the two rates below, never with one half. */
                hit_rate: number | null;
                /** @description The 95 % Wilson interval of the hit rate. */
                interval_95: number[] | null;
                /** @description The mean probability that the forecasts stated for a hit. */
                expected_rate: number | null;
                /** @description The same according to our long-run estimate at that time; no skill is claimed against it. */
                baseline_rate: number | null;
                /** @description Share of received rounds, including late ones, with a forecast in time; for windows, the share of possible windows that were issued. */
                coverage: number | null;
                /** @description Rounds without a forecast; for windows, possible windows that were not issued. */
                not_issued: number;
                /** @description Rounds received after a later one; null for windows. */
                late_rounds: number | null;
                /** @description Forecasts that cannot be scored, by cause. A void is final. */
                voids: {
                    /** @description Rounds were missing. */
                    gap: number;
                    /** @description The round had been requested before the forecast was issued. */
                    late: number;
                    /** @description The house gave two results. */
                    conflict: number;
                    /** @description Always 0: an impossible result is quarantined, so that forecasts on its round are void as `gap`. */
                    impossible: number;
                    /** @description An operator's decision, which is in the audit log. */
                    operator: number;
                };
                /** @description The hit rate if all voids had missed, and if all had hit. */
                rate_bounds: number[] | null;
                /** @description Why interval, z, e-value and skill are null although there are scores: too many forecasts are void, or too many rounds of the table are late. With `scope=house`, a table whose own figures are withheld counts as void as a whole. */
                withheld: string | null;
                /** @description Forecasts issued in the period that are not scored yet, including those whose round ended while scoring is paused. */
                pending: number;
                /** @description Share of settled forecasts that a witness's checkpoint of the public log covered before the first round after them was requested, as the operator states. It covers the time of issue only. */
                sealed: number | null;
                /** @description How far the hits are from the stated probabilities, in standard deviations. */
                z: number | null;
                /** @description Evidence that the stated probabilities are off target, valid over `all` only: it takes at least 20 × the number of rows you compare. */
                e_value: number | null;
                /** @description Mean −ln of the probability of the result, in nats; less is better. */
                log_loss: number | null;
                /** @description The same according to our long-run estimate at that time. */
                baseline_log_loss: number | null;
                /** @description Mean squared error, summed over the colors; less is better. */
                brier: number | null;
                /** @description The same according to our long-run estimate at that time. */
                baseline_brier: number | null;
                /** @description Ranked probability score, which counts a neighboring color as a smaller error; less is better. */
                rps: number | null;
                /** @description The same according to our long-run estimate at that time. */
                baseline_rps: number | null;
                /** @description 1 − log loss ÷ that of the best constant probabilities in hindsight, fitted per table and model; 0 or less on a fair game. */
                skill: number | null;
                /** @description Its 95 % interval; if it contains 0, no skill is shown. */
                skill_interval_95: number[] | null;
                /** @description Mean distance between stated and measured rates over ten bins. */
                calibration_error: number | null;
                /** @description The expected value by chance alone if every stated probability were exact. */
                calibration_error_floor: number | null;
                /** @description The bins that are not empty. */
                reliability: {
                    /** @description Stated probabilities from here … */
                    p_from: number;
                    /** @description … to below here. */
                    p_to: number;
                    /** @description Stated probabilities in this bin; for `next_color` each color counts as one. */
                    n: number;
                    /** @description Their mean stated probability. */
                    mean_p: number;
                    /** @description How many of them were right. */
                    hits: number;
                }[];
                /** @description Other forecasts, scored on the same rounds. */
                references: {
                    /** @description `theory` is the odds of the declared edge, if the house declares one; the others are rules that players use. */
                    name: string;
                    /** @description Its log loss on the same forecasts. */
                    log_loss: number | null;
                    /** @description Its Brier score on the same forecasts. */
                    brier: number | null;
                    /** @description Its skill against the same constant. */
                    skill: number | null;
                }[];
            }[];
        };
        Usage: {
            /**
             * @description Always true here; an error has false and a status other than 200.
             * @constant
             */
            ok: true;
            /**
             * @description The plan of the key.
             * @example Pro
             */
            plan: string;
            /** @description The key of this call. The counts are those of the whole account. */
            key: {
                /** @description The name that the account gave it. */
                name: string;
                /** @description Its last four characters. */
                last4: string;
            };
            /** @description This UTC day. */
            day: {
                /**
                 * Format: date
                 * @description The UTC day.
                 */
                date: string;
                /** @description Calls counted so far: responses with status 200. */
                requests: number;
                /** @description The limit of the plan; null if it has none. */
                limit: number | null;
                /** @description How many remain; null if there is no limit. */
                remaining: number | null;
                /** @description When the count is reset. */
                resets_at: components["schemas"]["Timestamp"];
            };
            /** @description This UTC month. */
            month: {
                /** @description The UTC month. */
                month: string;
                /** @description Calls counted so far: responses with status 200. */
                requests: number;
                /** @description The limit of the plan; null if it has none. */
                limit: number | null;
                /** @description How many remain; null if there is no limit. */
                remaining: number | null;
                /** @description When the count is reset. */
                resets_at: components["schemas"]["Timestamp"];
            };
            /** @description The rate limit. */
            burst: {
                /** @description The sustained rate in calls per second. */
                per_second: number;
                /** @description The most calls in a burst. */
                burst: number;
            };
            /** @description Today's calls by endpoint. */
            endpoints: {
                /** @description The last part of the path. */
                endpoint: string;
                /** @description Its counted calls. */
                requests: number;
            }[];
            /** @description The requested number of days, today first. */
            days: {
                /**
                 * Format: date
                 * @description The UTC day.
                 */
                date: string;
                /** @description Its counted calls. */
                requests: number;
            }[];
        };
    };
    responses: {
        /** @description Bad Request: `malformed_request`, `invalid_parameter`, `unknown_parameter`, `key_in_url` */
        Tables400: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "malformed_request" | "invalid_parameter" | "unknown_parameter" | "key_in_url";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Unauthorized: `missing_api_key`, `invalid_api_key`, `expired_api_key`, `revoked_api_key` */
        Tables401: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "missing_api_key" | "invalid_api_key" | "expired_api_key" | "revoked_api_key";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Payment Required: `no_active_plan`, `plan_expired` */
        Tables402: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "no_active_plan" | "plan_expired";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Forbidden: `account_suspended`, `email_not_verified`, `table_not_in_plan` */
        Tables403: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "account_suspended" | "email_not_verified" | "table_not_in_plan";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Not Found: `table_not_found` */
        Tables404: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "table_not_found";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Request Timeout: `request_timeout` */
        Tables408: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "request_timeout";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Payload Too Large: `body_too_large` */
        Tables413: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "body_too_large";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description URI Too Long: `url_too_long` */
        Tables414: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "url_too_long";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Request Header Fields Too Large: `headers_too_large` */
        Tables431: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "headers_too_large";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Too Many Requests: `rate_limited`, `day_quota_exceeded`, `month_quota_exceeded`, `service_ceiling_reached` */
        Tables429: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "Retry-After": components["headers"]["Retry-After"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "rate_limited" | "day_quota_exceeded" | "month_quota_exceeded" | "service_ceiling_reached";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Internal Server Error: `internal_error` */
        Tables500: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "internal_error";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Service Unavailable: `temporarily_unavailable` */
        Tables503: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "Retry-After": components["headers"]["Retry-After"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "temporarily_unavailable";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Bad Request: `malformed_request`, `invalid_parameter`, `unknown_parameter`, `key_in_url` */
        Account400: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "malformed_request" | "invalid_parameter" | "unknown_parameter" | "key_in_url";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Unauthorized: `missing_api_key`, `invalid_api_key`, `expired_api_key`, `revoked_api_key` */
        Account401: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "missing_api_key" | "invalid_api_key" | "expired_api_key" | "revoked_api_key";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Payment Required: `no_active_plan`, `plan_expired` */
        Account402: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "no_active_plan" | "plan_expired";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Forbidden: `account_suspended`, `email_not_verified` */
        Account403: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "account_suspended" | "email_not_verified";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Request Timeout: `request_timeout` */
        Account408: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "request_timeout";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Payload Too Large: `body_too_large` */
        Account413: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "body_too_large";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description URI Too Long: `url_too_long` */
        Account414: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "url_too_long";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Request Header Fields Too Large: `headers_too_large` */
        Account431: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "headers_too_large";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Too Many Requests: `rate_limited` */
        Account429: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "Retry-After": components["headers"]["Retry-After"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "rate_limited";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Internal Server Error: `internal_error` */
        Account500: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "internal_error";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Service Unavailable: `temporarily_unavailable` */
        Account503: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                "Retry-After": components["headers"]["Retry-After"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                RateLimit: components["headers"]["RateLimit"];
                "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                Deprecation: components["headers"]["Deprecation"];
                Sunset: components["headers"]["Sunset"];
                Link: components["headers"]["Link"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "temporarily_unavailable";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Bad Request: `malformed_request`, `key_in_url` */
        Service400: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "malformed_request" | "key_in_url";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Request Timeout: `request_timeout` */
        Service408: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "request_timeout";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Payload Too Large: `body_too_large` */
        Service413: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "body_too_large";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description URI Too Long: `url_too_long` */
        Service414: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "url_too_long";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Request Header Fields Too Large: `headers_too_large` */
        Service431: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "headers_too_large";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
        /** @description Internal Server Error: `internal_error` */
        Service500: {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "Cache-Control": components["headers"]["Cache-Control"];
                Vary: components["headers"]["Vary"];
                [name: string]: unknown;
            };
            content: {
                "application/json": {
                    /**
                     * @description Always false here.
                     * @constant
                     */
                    ok: false;
                    error: {
                        /**
                         * @description The stable name of the error, for programs.
                         * @enum {string}
                         */
                        code: "internal_error";
                        /** @description For people; it may change. */
                        message: string;
                        /** @description The page that explains the code. */
                        docs_url: string;
                        /** @description Details, if there are any: the parameter, or the names that are allowed. */
                        details?: {
                            [key: string]: unknown;
                        };
                    };
                    /** @description The same as in the header X-Request-Id. */
                    request_id: string;
                };
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /**
         * @description The id of this request; quote it when you report a problem.
         * @example req_0f8fad5bd9cb469fa16570867728950e
         */
        "X-Request-Id": string;
        /**
         * @description A private cache may store the response, and must revalidate it.
         * @example private, no-cache
         */
        "Cache-Control": string;
        /**
         * @description The request headers that the response depends on.
         * @example X-Api-Key, Accept-Encoding
         */
        Vary: string;
        /**
         * @description Identifies this content and its compression. Send it back in `If-None-Match`: a 304, which is free, means that it has not changed. Once the quota is used up, the response is a 429 even then.
         * @example "n3hU9m0a8Yk2bJt6sQ4xWv1zR5eLc7dPqTfGiKoMyBE-br"
         */
        ETag: string;
        /**
         * @description Seconds since the published data was last read, or since accuracy last covered every stored round.
         * @example 0
         */
        "X-Data-Age": number;
        /**
         * @description Size and root of the newest checkpoint of the public log, which is at `/log/checkpoint`: store one, and you can prove any later change of what precedes it.
         * @example 1234 nfG5Nn2o4cNVKXNjUzZ1kNe2Rz4Kk3QmY1p3m8oJ0bE=
         */
        "X-Log-Checkpoint": string;
        /**
         * @description The limits of the plan: `q` calls in `w` seconds, by name. Days and months are those of UTC.
         * @example "burst";q=10;w=1, "day";q=100000;w=86400, "month";q=2500000;w=2592000
         */
        "RateLimit-Policy": string;
        /**
         * @description What remains of each limit: `r` calls, and `t` seconds until there are more.
         * @example "burst";r=9;t=1, "day";r=99876;t=33101, "month";r=2411000;t=811000
         */
        RateLimit: string;
        /**
         * @description Calls left this UTC day; absent if the plan has no such limit.
         * @example 99876
         */
        "X-Quota-Day-Remaining": number;
        /**
         * @description Calls left this UTC month; absent if the plan has no such limit.
         * @example 2411000
         */
        "X-Quota-Month-Remaining": number;
        /**
         * @description Seconds to wait before the next request.
         * @example 33101
         */
        "Retry-After": number;
        /**
         * @description How to authenticate.
         * @example ApiKey realm="api"
         */
        "WWW-Authenticate": string;
        /**
         * @description Only on a deprecated path: since when it is deprecated, as `@` and seconds since 1970.
         * @example @1767225600
         */
        Deprecation: string;
        /**
         * @description Only on a deprecated path: when it is removed, at least six months after the announcement.
         * @example Wed, 01 Jul 2026 00:00:00 GMT
         */
        Sunset: string;
        /**
         * @description Only on a deprecated path: the page about it, and its successor.
         * @example </docs#changes>; rel="deprecation"; type="text/html"
         */
        Link: string;
        /**
         * @description Pages of any site may read the response.
         * @example *
         */
        "Access-Control-Allow-Origin": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getGames: {
        parameters: {
            query?: {
                /**
                 * @description Only tables of these houses. Ids separated by commas, at most 20.
                 * @example [
                 *       "bustabit"
                 *     ]
                 */
                house?: string[];
                /**
                 * @description Only tables of these games. Ids separated by commas, at most 20.
                 * @example [
                 *       "crash"
                 *     ]
                 */
                game?: string[];
                /**
                 * @description Only tables of these markets. Ids separated by commas, at most 20.
                 * @example [
                 *       "global"
                 *     ]
                 */
                market?: string[];
                /**
                 * @description Only tables that have one of these statuses now.
                 * @example [
                 *       "live"
                 *     ]
                 */
                status?: ("live" | "stale" | "offline" | "paused")[];
            };
            header?: {
                /**
                 * @description The ETag of an earlier response to the same request: a free 304 if the response would be the same, or a 429 once the quota is used up; `*` never matches.
                 * @example "n3hU9m0a8Yk2bJt6sQ4xWv1zR5eLc7dPqTfGiKoMyBE"
                 */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The response; it counts as one call. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "X-Data-Age": components["headers"]["X-Data-Age"];
                    "X-Log-Checkpoint": components["headers"]["X-Log-Checkpoint"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                    "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "plan": "Pro",
                     *       "games": [
                     *         {
                     *           "house": "bustabit",
                     *           "game": "crash",
                     *           "market": "global",
                     *           "continuity_notice": false,
                     *           "continuity_text": null,
                     *           "status": "live",
                     *           "last_round_at": "2026-11-21T12:55:43.8028620Z",
                     *           "buffered_rounds": 120
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Games"];
                };
            };
            /** @description Not changed since your copy; free. Once the quota is used up, the response is a 429. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "X-Data-Age": components["headers"]["X-Data-Age"];
                    "X-Log-Checkpoint": components["headers"]["X-Log-Checkpoint"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                    "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Tables400"];
            401: components["responses"]["Tables401"];
            402: components["responses"]["Tables402"];
            403: components["responses"]["Tables403"];
            404: components["responses"]["Tables404"];
            408: components["responses"]["Tables408"];
            413: components["responses"]["Tables413"];
            414: components["responses"]["Tables414"];
            429: components["responses"]["Tables429"];
            431: components["responses"]["Tables431"];
            500: components["responses"]["Tables500"];
            503: components["responses"]["Tables503"];
        };
    };
    getRounds: {
        parameters: {
            query?: {
                /**
                 * @description Only tables of these houses. Ids separated by commas, at most 20.
                 * @example [
                 *       "bustabit"
                 *     ]
                 */
                house?: string[];
                /**
                 * @description Only tables of these games. Ids separated by commas, at most 20.
                 * @example [
                 *       "crash"
                 *     ]
                 */
                game?: string[];
                /**
                 * @description Only tables of these markets. Ids separated by commas, at most 20.
                 * @example [
                 *       "global"
                 *     ]
                 */
                market?: string[];
                /**
                 * @description At most this many rounds of each table. The number of tables times the limit may be at most 200,000; the default is lower if it would be more.
                 * @example 5
                 */
                limit?: number;
            };
            header?: {
                /**
                 * @description The ETag of an earlier response to the same request: a free 304 if the response would be the same, or a 429 once the quota is used up; `*` never matches.
                 * @example "n3hU9m0a8Yk2bJt6sQ4xWv1zR5eLc7dPqTfGiKoMyBE"
                 */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The response; it counts as one call. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "X-Data-Age": components["headers"]["X-Data-Age"];
                    "X-Log-Checkpoint": components["headers"]["X-Log-Checkpoint"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                    "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "plan": "Pro",
                     *       "tables": [
                     *         {
                     *           "house": "bustabit",
                     *           "game": "crash",
                     *           "market": "global",
                     *           "status": "live",
                     *           "last_round_at": "2026-11-21T12:55:43.8028620Z",
                     *           "rounds": [
                     *             {
                     *               "round_id": "270",
                     *               "multiplier": 2.71,
                     *               "color": "purple",
                     *               "occurred_at": "2026-11-21T12:55:43.6170000Z",
                     *               "received_at": "2026-11-21T12:55:43.8028620Z",
                     *               "verified": true,
                     *               "late": false
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Rounds"];
                };
            };
            /** @description Not changed since your copy; free. Once the quota is used up, the response is a 429. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "X-Data-Age": components["headers"]["X-Data-Age"];
                    "X-Log-Checkpoint": components["headers"]["X-Log-Checkpoint"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                    "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Tables400"];
            401: components["responses"]["Tables401"];
            402: components["responses"]["Tables402"];
            403: components["responses"]["Tables403"];
            404: components["responses"]["Tables404"];
            408: components["responses"]["Tables408"];
            413: components["responses"]["Tables413"];
            414: components["responses"]["Tables414"];
            429: components["responses"]["Tables429"];
            431: components["responses"]["Tables431"];
            500: components["responses"]["Tables500"];
            503: components["responses"]["Tables503"];
        };
    };
    getForecasts: {
        parameters: {
            query?: {
                /**
                 * @description Only tables of these houses. Ids separated by commas, at most 20.
                 * @example [
                 *       "bustabit"
                 *     ]
                 */
                house?: string[];
                /**
                 * @description Only tables of these games. Ids separated by commas, at most 20.
                 * @example [
                 *       "crash"
                 *     ]
                 */
                game?: string[];
                /**
                 * @description Only tables of these markets. Ids separated by commas, at most 20.
                 * @example [
                 *       "global"
                 *     ]
                 */
                market?: string[];
            };
            header?: {
                /**
                 * @description The ETag of an earlier response to the same request: a free 304 if the response would be the same, or a 429 once the quota is used up; `*` never matches.
                 * @example "n3hU9m0a8Yk2bJt6sQ4xWv1zR5eLc7dPqTfGiKoMyBE"
                 */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The response; it counts as one call. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "X-Data-Age": components["headers"]["X-Data-Age"];
                    "X-Log-Checkpoint": components["headers"]["X-Log-Checkpoint"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                    "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "plan": "Pro",
                     *       "notice": "Information only. Rounds come from the house's random generator; no outcome is guaranteed. 18+.",
                     *       "forecasts": [
                     *         {
                     *           "house": "bustabit",
                     *           "game": "crash",
                     *           "market": "global",
                     *           "state": "ready",
                     *           "generated_at": "2026-11-21T12:55:43.8960040Z",
                     *           "calibration": null,
                     *           "next_color": {
                     *             "forecast_id": "f1-264",
                     *             "issued_at": "2026-11-21T12:55:43.8747910Z",
                     *             "after_round_id": "270",
                     *             "target_round_id": "271",
                     *             "model": "k7@1",
                     *             "probabilities": {
                     *               "blue": 0.502228,
                     *               "purple": 0.397294,
                     *               "pink": 0.100478
                     *             },
                     *             "baseline": {
                     *               "blue": 0.500714,
                     *               "purple": 0.392286,
                     *               "pink": 0.107
                     *             },
                     *             "hash": "22901a1fb73236c834e05c36a8cc23be3f45b0e1e6ae780cfacbff1d6a5e8196"
                     *           },
                     *           "windows": [
                     *             {
                     *               "feature": "window:pink:80",
                     *               "color": "pink",
                     *               "target": 80,
                     *               "forecast_id": "f1-249",
                     *               "issued_at": "2026-11-21T12:55:38.9068180Z",
                     *               "after_round_id": "265",
                     *               "rounds": 16,
                     *               "probability": 0.817121,
                     *               "baseline": 0.82607,
                     *               "now": {
                     *                 "rounds_left": 11,
                     *                 "probability": null,
                     *                 "scored": false
                     *               },
                     *               "measured": {
                     *                 "period": "30d",
                     *                 "sample_size": 4,
                     *                 "hit_rate": 1,
                     *                 "interval_95": [
                     *                   0.5101091635454027,
                     *                   1
                     *                 ]
                     *               },
                     *               "hash": "c8e7f026c4d462f42c8fd328e09a1ea1fa2d9f3a55a4a6a4d4912c193e12c7ba"
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Forecasts"];
                };
            };
            /** @description Not changed since your copy; free. Once the quota is used up, the response is a 429. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "X-Data-Age": components["headers"]["X-Data-Age"];
                    "X-Log-Checkpoint": components["headers"]["X-Log-Checkpoint"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                    "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Tables400"];
            401: components["responses"]["Tables401"];
            402: components["responses"]["Tables402"];
            403: components["responses"]["Tables403"];
            404: components["responses"]["Tables404"];
            408: components["responses"]["Tables408"];
            413: components["responses"]["Tables413"];
            414: components["responses"]["Tables414"];
            429: components["responses"]["Tables429"];
            431: components["responses"]["Tables431"];
            500: components["responses"]["Tables500"];
            503: components["responses"]["Tables503"];
        };
    };
    getReadings: {
        parameters: {
            query?: {
                /**
                 * @description Only tables of these houses. Ids separated by commas, at most 20.
                 * @example [
                 *       "bustabit"
                 *     ]
                 */
                house?: string[];
                /**
                 * @description Only tables of these games. Ids separated by commas, at most 20.
                 * @example [
                 *       "crash"
                 *     ]
                 */
                game?: string[];
                /**
                 * @description Only tables of these markets. Ids separated by commas, at most 20.
                 * @example [
                 *       "global"
                 *     ]
                 */
                market?: string[];
                /**
                 * @description The language of the text.
                 * @example en
                 */
                lang?: "en" | "es" | "pt";
            };
            header?: {
                /**
                 * @description The ETag of an earlier response to the same request: a free 304 if the response would be the same, or a 429 once the quota is used up; `*` never matches.
                 * @example "n3hU9m0a8Yk2bJt6sQ4xWv1zR5eLc7dPqTfGiKoMyBE"
                 */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The response; it counts as one call. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "X-Data-Age": components["headers"]["X-Data-Age"];
                    "X-Log-Checkpoint": components["headers"]["X-Log-Checkpoint"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                    "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "plan": "Pro",
                     *       "notice": "Information only. Rounds come from the house's random generator; no outcome is guaranteed. 18+.",
                     *       "readings": [
                     *         {
                     *           "house": "bustabit",
                     *           "game": "crash",
                     *           "market": "global",
                     *           "generated_at": "2026-11-21T13:35:46.1906740Z",
                     *           "lang": "en",
                     *           "text": "No pink for 4 rounds (on average it occurs every 10.2 rounds; a wait this long or longer happens 66% of the time). In 102 rounds of this table the past has not changed the odds (evidence 0.15×, we require 80×): pink occurred in 9.8% of all rounds, and a wait makes it neither more nor less likely.",
                     *           "facts": [
                     *             {
                     *               "name": "gap:pink",
                     *               "value": 4,
                     *               "expected": 10.1836,
                     *               "rounds": 102,
                     *               "unusual": false
                     *             },
                     *             {
                     *               "name": "gap_chance:pink",
                     *               "value": 0.661374,
                     *               "expected": null,
                     *               "rounds": 102,
                     *               "unusual": false
                     *             },
                     *             {
                     *               "name": "dependence_evidence",
                     *               "value": 0.153682,
                     *               "expected": 1,
                     *               "rounds": 102,
                     *               "unusual": false
                     *             }
                     *           ],
                     *           "based_on_rounds": 102
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Readings"];
                };
            };
            /** @description Not changed since your copy; free. Once the quota is used up, the response is a 429. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "X-Data-Age": components["headers"]["X-Data-Age"];
                    "X-Log-Checkpoint": components["headers"]["X-Log-Checkpoint"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                    "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Tables400"];
            401: components["responses"]["Tables401"];
            402: components["responses"]["Tables402"];
            403: components["responses"]["Tables403"];
            404: components["responses"]["Tables404"];
            408: components["responses"]["Tables408"];
            413: components["responses"]["Tables413"];
            414: components["responses"]["Tables414"];
            429: components["responses"]["Tables429"];
            431: components["responses"]["Tables431"];
            500: components["responses"]["Tables500"];
            503: components["responses"]["Tables503"];
        };
    };
    getAccuracy: {
        parameters: {
            query?: {
                /**
                 * @description Only tables of these houses. Ids separated by commas, at most 20.
                 * @example [
                 *       "bustabit"
                 *     ]
                 */
                house?: string[];
                /**
                 * @description Only tables of these games. Ids separated by commas, at most 20.
                 * @example [
                 *       "crash"
                 *     ]
                 */
                game?: string[];
                /**
                 * @description Only tables of these markets. Ids separated by commas, at most 20.
                 * @example [
                 *       "global"
                 *     ]
                 */
                market?: string[];
                /**
                 * @description Only this feature: `next_color` or `window:<color>:<target>`.
                 * @example next_color
                 */
                feature?: string;
                /**
                 * @description `24h` is the current UTC hour and the 23 before it; `7d`, `30d` and `90d` are whole UTC days and include today. A replaced model has a row in `all`, and in the others while they include forecasts of it.
                 * @example 30d
                 */
                period?: "24h" | "7d" | "30d" | "90d" | "all";
                /**
                 * @description Figures of each table, or of each house over its tables in your plan.
                 * @example table
                 */
                scope?: "table" | "house";
            };
            header?: {
                /**
                 * @description The ETag of an earlier response to the same request: a free 304 if the response would be the same, or a 429 once the quota is used up; `*` never matches.
                 * @example "n3hU9m0a8Yk2bJt6sQ4xWv1zR5eLc7dPqTfGiKoMyBE"
                 */
                "If-None-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The response; it counts as one call. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "X-Data-Age": components["headers"]["X-Data-Age"];
                    "X-Log-Checkpoint": components["headers"]["X-Log-Checkpoint"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                    "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "plan": "Pro",
                     *       "notice": "Information only. Rounds come from the house's random generator; no outcome is guaranteed. 18+.",
                     *       "accuracy": [
                     *         {
                     *           "feature": "next_color",
                     *           "model": "k7@1",
                     *           "house": "bustabit",
                     *           "game": "crash",
                     *           "market": "global",
                     *           "period": "30d",
                     *           "period_start": "2026-10-23T00:00:00.0000000Z",
                     *           "period_end": "2026-11-22T00:00:00.0000000Z",
                     *           "as_of": "2026-11-22T09:30:05.1234560Z",
                     *           "as_of_round_id": "9163711",
                     *           "sample_size": 63,
                     *           "hits": 29,
                     *           "hit_rate": 0.4603174603174603,
                     *           "interval_95": [
                     *             0.34308864576044984,
                     *             0.5821074811910463
                     *           ],
                     *           "expected_rate": 0.5120715555555555,
                     *           "baseline_rate": 0.520991746031746,
                     *           "coverage": 1,
                     *           "not_issued": 0,
                     *           "late_rounds": 0,
                     *           "voids": {
                     *             "gap": 0,
                     *             "late": 0,
                     *             "conflict": 0,
                     *             "impossible": 0,
                     *             "operator": 0
                     *           },
                     *           "rate_bounds": [
                     *             0.4603174603174603,
                     *             0.4603174603174603
                     *           ],
                     *           "withheld": null,
                     *           "pending": 0,
                     *           "sealed": 0,
                     *           "z": -0.8218744213490594,
                     *           "e_value": 0.719529123801633,
                     *           "log_loss": 0.9711214761904762,
                     *           "baseline_log_loss": 0.981358492063492,
                     *           "brier": 0.5971920011088889,
                     *           "baseline_brier": 0.6033943115626667,
                     *           "rps": 0.3501915839787302,
                     *           "baseline_rps": 0.35384951069388887,
                     *           "skill": 0.01043147428366428,
                     *           "skill_interval_95": [
                     *             0.00232388661450437,
                     *             0.01853906195282419
                     *           ],
                     *           "calibration_error": 0.03556754497354497,
                     *           "calibration_error_floor": 0.046149738410461355,
                     *           "reliability": [
                     *             {
                     *               "p_from": 0.5,
                     *               "p_to": 0.6,
                     *               "n": 63,
                     *               "mean_p": 0.5120715555555555,
                     *               "hits": 29
                     *             }
                     *           ],
                     *           "references": [
                     *             {
                     *               "name": "last_20",
                     *               "log_loss": 1.0194136507936509,
                     *               "brier": 0.6295795751795873,
                     *               "skill": -0.03877803986812256
                     *             }
                     *           ]
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Accuracy"];
                };
            };
            /** @description Not changed since your copy; free. Once the quota is used up, the response is a 429. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "X-Data-Age": components["headers"]["X-Data-Age"];
                    "X-Log-Checkpoint": components["headers"]["X-Log-Checkpoint"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                    "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Tables400"];
            401: components["responses"]["Tables401"];
            402: components["responses"]["Tables402"];
            403: components["responses"]["Tables403"];
            404: components["responses"]["Tables404"];
            408: components["responses"]["Tables408"];
            413: components["responses"]["Tables413"];
            414: components["responses"]["Tables414"];
            429: components["responses"]["Tables429"];
            431: components["responses"]["Tables431"];
            500: components["responses"]["Tables500"];
            503: components["responses"]["Tables503"];
        };
    };
    getUsage: {
        parameters: {
            query?: {
                /**
                 * @description How many days to list, today first.
                 * @example 7
                 */
                days?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The response; it is free. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                    RateLimit: components["headers"]["RateLimit"];
                    "X-Quota-Day-Remaining": components["headers"]["X-Quota-Day-Remaining"];
                    "X-Quota-Month-Remaining": components["headers"]["X-Quota-Month-Remaining"];
                    Deprecation: components["headers"]["Deprecation"];
                    Sunset: components["headers"]["Sunset"];
                    Link: components["headers"]["Link"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "plan": "Pro",
                     *       "key": {
                     *         "name": "default",
                     *         "last4": "ulqH"
                     *       },
                     *       "day": {
                     *         "date": "2026-11-21",
                     *         "requests": 124,
                     *         "limit": 100000,
                     *         "remaining": 99876,
                     *         "resets_at": "2026-11-22T00:00:00.0000000Z"
                     *       },
                     *       "month": {
                     *         "month": "2026-11",
                     *         "requests": 89000,
                     *         "limit": 2500000,
                     *         "remaining": 2411000,
                     *         "resets_at": "2026-12-01T00:00:00.0000000Z"
                     *       },
                     *       "burst": {
                     *         "per_second": 10,
                     *         "burst": 20
                     *       },
                     *       "endpoints": [
                     *         {
                     *           "endpoint": "forecasts",
                     *           "requests": 34
                     *         },
                     *         {
                     *           "endpoint": "rounds",
                     *           "requests": 90
                     *         }
                     *       ],
                     *       "days": [
                     *         {
                     *           "date": "2026-11-21",
                     *           "requests": 124
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Usage"];
                };
            };
            400: components["responses"]["Account400"];
            401: components["responses"]["Account401"];
            402: components["responses"]["Account402"];
            403: components["responses"]["Account403"];
            408: components["responses"]["Account408"];
            413: components["responses"]["Account413"];
            414: components["responses"]["Account414"];
            429: components["responses"]["Account429"];
            431: components["responses"]["Account431"];
            500: components["responses"]["Account500"];
            503: components["responses"]["Account503"];
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It does. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "version": "1.0.0"
                     *     }
                     */
                    "application/json": components["schemas"]["Health"];
                };
            };
            400: components["responses"]["Service400"];
            408: components["responses"]["Service408"];
            413: components["responses"]["Service413"];
            414: components["responses"]["Service414"];
            431: components["responses"]["Service431"];
            500: components["responses"]["Service500"];
        };
    };
    getReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It may. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": true,
                     *       "checks": {
                     *         "postgres": true,
                     *         "redis": true,
                     *         "migrations": true,
                     *         "polling": true
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            400: components["responses"]["Service400"];
            408: components["responses"]["Service408"];
            413: components["responses"]["Service413"];
            414: components["responses"]["Service414"];
            431: components["responses"]["Service431"];
            500: components["responses"]["Service500"];
            /** @description It cannot accept work, or it is stopping. */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "ok": false,
                     *       "checks": {
                     *         "postgres": false,
                     *         "redis": true,
                     *         "migrations": true,
                     *         "polling": true
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Readiness"];
                };
            };
        };
    };
    getDocument: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description This document. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "Access-Control-Allow-Origin": components["headers"]["Access-Control-Allow-Origin"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description Not changed since your copy. */
            304: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Cache-Control": components["headers"]["Cache-Control"];
                    Vary: components["headers"]["Vary"];
                    ETag: components["headers"]["ETag"];
                    "Access-Control-Allow-Origin": components["headers"]["Access-Control-Allow-Origin"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Service400"];
            408: components["responses"]["Service408"];
            413: components["responses"]["Service413"];
            414: components["responses"]["Service414"];
            431: components["responses"]["Service431"];
            500: components["responses"]["Service500"];
        };
    };
}
