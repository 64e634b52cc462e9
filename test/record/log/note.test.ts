import { generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  cosign,
  cosignedAt,
  hasOtherCosignature,
  openCheckpoint,
  parseVerifierKey,
  readCheckpoint,
  signCheckpoint,
  signerOf,
  verifierKeyText,
} from "../../../src/signed-note.ts";

const pem = () => generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const root = Buffer.alloc(32, 7);
const checkpoint = { origin: "example.com/log", size: 42, root };

/** From the documentation of Go's golang.org/x/mod/sumdb/note. */
const GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const GO_NOTE =
  "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n" +
  "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

describe("a signed note", () => {
  test("of another implementation opens with its key, and no other text does", () => {
    const key = parseVerifierKey(GO_KEY);
    // it is no checkpoint, so only the signature can be looked at: the error comes after it
    expect(() => openCheckpoint(GO_NOTE, key)).toThrow("expected a checkpoint of origin");
    expect(verifierKeyText(key)).toBe(GO_KEY);
  });

  test("has the C2SP form of a checkpoint", () => {
    const key = signerOf("example.com/log", "log", pem());
    const note = signCheckpoint(checkpoint, key);
    expect(note).toMatch(/^example\.com\/log\n42\n[A-Za-z0-9+/]{43}=\n\n— example\.com\/log [A-Za-z0-9+/]+=*\n$/);
    expect(openCheckpoint(note, parseVerifierKey(verifierKeyText(key)))).toEqual(checkpoint);
    expect(readCheckpoint(note)).toEqual(checkpoint);
  });

  test("is refused when its text, its name or its key is another", () => {
    const key = signerOf("example.com/log", "log", pem());
    const note = signCheckpoint(checkpoint, key);
    const refused = /expected a checkpoint signed by/;
    expect(() => openCheckpoint(note.replace("42", "43"), key)).toThrow(refused);
    expect(() => openCheckpoint(note, signerOf("example.com/log", "log", pem()))).toThrow(refused);
    expect(() => openCheckpoint(note, { ...key, name: "example.com/other" })).toThrow(refused);
    expect(() => openCheckpoint(note.slice(0, -1), key)).toThrow("expected a signed note");
    expect(() => openCheckpoint("", key)).toThrow("expected a signed note");
  });

  test("keeps the time at which a witness cosigned it", () => {
    const witness = signerOf("witness.example.com", "witness", pem());
    const note = signCheckpoint(checkpoint, signerOf("example.com/log", "log", pem()));
    expect(cosignedAt(note, witness)).toBeNull();
    const cosigned = note + cosign(note, witness, 1_700_000_000);
    expect(cosignedAt(cosigned, parseVerifierKey(verifierKeyText(witness)))).toBe(1_700_000_000);
    expect(cosignedAt(cosigned.replace("42", "43"), witness)).toBeNull();
    expect(hasOtherCosignature(cosigned, [], 1_700_000_000)).toBe(true);
    expect(hasOtherCosignature(cosigned, [], 1_699_999_999)).toBe(false);
    expect(hasOtherCosignature(cosigned, [witness], 1_700_000_000)).toBe(false);
  });

  test("names a wrong verifier key", () => {
    for (const text of ["", "a+b+c", GO_KEY.replace("c74f", "c74e"), GO_KEY.slice(0, -4)])
      expect(() => parseVerifierKey(text)).toThrow("expected a verifier key");
  });
});
