import { z } from "zod";
import { holderEntry } from "../../accounts/holders/holder-entry.ts";
import { appendAudit } from "../../audit/store.ts";
import { keyCreated, keyRevoked, keyRotated } from "../../callers/key-letters.ts";
import { OVERLAPS, type Overlap, rotateOwnKey } from "../../callers/rotation-store.ts";
import { createOwnKey, revokeKey } from "../../callers/key-store.ts";
import { nested } from "../../db/nested.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import type { Shown } from "../../frame/view.ts";
import { idOf } from "../../frame/path-id.ts";
import { consoleAction } from "../contract.ts";

const KEYS = "/console/keys";
const crumbs = [{ label: "Keys", href: KEYS }];

const createForm = z.object({
  name: z
    .string()
    .trim()
    .min(1, "expected a name, so that you know later what the key is for")
    .max(60, "expected a name of at most 60 characters")
    // no characters that change how the rest of a line is displayed; a joiner only within an emoji
    .regex(
      /^(?:[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|(?<=[\p{Extended_Pictographic}\p{EMod}\uFE0F])\u200D)*$/u,
      "expected a name without line breaks and signs that cannot be seen",
    ),
});

/** Creates a key and shows it once. */
export const createKeyAction = consoleAction({
  name: "key.create",
  title: "Create key",
  path: "/keys",
  needs: ["terms", "fresh-with-second-factor"],
  form: createForm,
  async run(parts, { holder, form: { name } }) {
    const made = await parts.sql.begin(async (tx) => {
      const done = await createOwnKey(tx, holder.accountId, name);
      if (!done.ok) return done;
      const after = { key: done.id, last4: done.key.slice(-4) };
      await appendAudit(tx, holderEntry(holder, { action: "key.create", after }));
      await queueMail(tx, { ...keyCreated(parts.site(), { name, last4: after.last4 }), recipient: holder.email });
      return done;
    });
    if (!made.ok) return made;
    const once = shownOnce({ key: made.key, name, replaced: null, site: parts.site() });
    return { ok: true, message: "", location: KEYS, once };
  },
});

const rotateForm = z.object({ overlap: z.enum(Object.keys(OVERLAPS) as [Overlap, ...Overlap[]]) });

/** Creates a key that replaces another one; the old key works until the chosen overlap ends. */
export const rotateKeyAction = consoleAction({
  name: "key.rotate",
  title: "Rotate key",
  path: "/keys/:key/rotate",
  needs: ["terms", "fresh-with-second-factor"],
  form: rotateForm,
  async run(parts, { holder, params, form: { overlap } }) {
    const id = idOf(params["key"]);
    if (id === null) return { ok: false, missing: true };
    const made = await parts.sql.begin(async (tx) => {
      const done = await rotateOwnKey(tx, holder.accountId, id, overlap);
      if (done === null || !done.ok) return done;
      const before = { key: done.replaced.id, last4: done.replaced.last4 };
      const after = { key: done.id, last4: done.key.slice(-4), overlap, old_ends_at: done.replaced.endsAt };
      await appendAudit(tx, holderEntry(holder, { action: "key.rotate", before, after }));
      const letter = keyRotated(parts.site(), {
        from: done.replaced,
        to: { name: done.name, last4: after.last4 },
        endsAt: done.replaced.endsAt,
      });
      await queueMail(tx, { ...letter, recipient: holder.email });
      return done;
    });
    if (made === null) return { ok: false, missing: true };
    if (!made.ok) return made;
    const replaced = { ...made.replaced, isOver: OVERLAPS[overlap] === 0 };
    const once = shownOnce({ key: made.key, name: made.name, replaced, site: parts.site() });
    return { ok: true, message: "", location: KEYS, once };
  },
});

/** Revokes a key permanently. */
export const revokeKeyAction = consoleAction({
  name: "key.revoke",
  path: "/keys/:key/revoke",
  needs: [],
  form: z.strictObject({}),
  async run({ sql, site }, { holder, params }) {
    const id = idOf(params["key"]);
    if (id === null) return { ok: false, missing: true };
    const done = await sql.begin(async (tx) => {
      const revoked = await revokeKey(nested(tx), id, holder.accountId);
      if (revoked.ok && revoked.didNothing !== true) {
        const after = { key: id, last4: revoked.last4 };
        await appendAudit(tx, holderEntry(holder, { action: "key.revoke", after }));
        await queueMail(tx, { ...keyRevoked(site(), revoked), recipient: holder.email });
      }
      return revoked;
    });
    if (!done.ok) return { ok: false, missing: true };
    const wasRevoked = done.didNothing === true;
    const outcome = wasRevoked ? "was revoked before." : "is revoked. Its next call is refused.";
    const message = `Key …${done.last4} ${outcome}`;
    return { ok: true, message, location: KEYS, ...(wasRevoked && { didNothing: true }) };
  },
});

function shownOnce(data: object): Shown {
  return { template: "keys/once", title: "Your new key", data, crumbs };
}
