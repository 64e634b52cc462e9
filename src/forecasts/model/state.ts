/**
 * A model state as bytes: the same state gives the same bytes and the same hash on every machine, so that a replay can
 * prove that it reached the same state.
 *
 * Layout: magic `RHS1` (4 bytes), length of the head (uint32), the head (JSON text that names the model), then the
 * memory as float64; numbers little-endian.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { stateOf, type State } from "./k7.ts";
import { createModel, type Model } from "./model.ts";
import { parameterSetOf } from "./model-name.ts";
import { storedParameters, valuesOf } from "./parameter-set.ts";
import { K7_1 } from "./parameters.ts";

/** First bytes of every saved state; the digit is the version of this layout. */
const MAGIC = "RHS1";

/** Bytes before the head: magic and length. */
const HEAD_AT = 8;

/** Encodes a state with its model, so that it cannot be decoded for another one. */
export function encodeState(model: Model, state: State): Buffer {
  const head = Buffer.from(headOf(model), "utf8");
  const bytes = Buffer.alloc(HEAD_AT + head.length + 8 * state.memory.length);
  bytes.write(MAGIC, 0, "latin1");
  bytes.writeUInt32LE(head.length, 4);
  head.copy(bytes, HEAD_AT);
  state.memory.forEach((value, i) => bytes.writeDoubleLE(value, HEAD_AT + head.length + 8 * i));
  return bytes;
}

/**
 * Decodes a state, bit for bit.
 *
 * @throws Error if the bytes are no state, are cut or damaged, or belong to a model of another name, bands or edge
 */
export function decodeState(model: Model, bytes: Uint8Array): State {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { head, memoryAt } = readHead(buffer);
  const expected = headOf(model);
  if (head !== expected)
    throw new Error(
      `expected a state of ${expected}, got one of ${head}; use that model or rebuild the state by calibrate`,
    );
  const size = memoryAt + 8 * model.at.length;
  if (buffer.length !== size)
    throw new Error(`expected a model state of ${size} bytes, got ${buffer.length}; rebuild it by calibrate`);
  const memory = Float64Array.from({ length: model.at.length }, (_, i) => buffer.readDoubleLE(memoryAt + 8 * i));
  if (!memory.every(Number.isFinite))
    throw new Error("expected finite numbers in a model state, got others; rebuild it by calibrate");
  return stateOf(model, memory);
}

/**
 * The model of a saved state, with its bands and edge: a table continues with these even if its declared edge has changed
 * since.
 *
 * A state of a parameter set other than `k7@1` holds the whole set.
 *
 * @throws Error if the bytes are no state, or name a model that is unknown or does not match bands, edge and parameters
 */
export function modelOfState(bytes: Uint8Array): Model {
  const { head } = readHead(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  const parsed = headJson.safeParse(head);
  if (!parsed.success) throw new Error(`expected a state of ${K7_1.name}, got one of ${head}; rebuild it by calibrate`);
  const { model, thresholds, edge, parameters } = parsed.data;
  const own = parameters === undefined ? {} : { parameters: storedParameters(parameterSetOf(model), parameters) };
  const found = createModel({ thresholds, edge, ...own });
  if (found.name !== model)
    throw new Error(`expected a state of ${model}, got bands and an edge of ${found.name}; rebuild it by calibrate`);
  return found;
}

/**
 * Hash of a state's bytes, hex: what checkpoints and calibrations publish.
 *
 * @example
 * stateHash(new Uint8Array()); // => "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
 */
export function stateHash(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

const headJson = z
  .string()
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch (error) {
      context.addIssue(String(error));
      return z.NEVER;
    }
  })
  .pipe(
    z
      .strictObject({
        model: z.string(),
        thresholds: z.array(z.number()),
        edge: z.number().nullable(),
        parameters: z.unknown().optional(),
      })
      .refine(({ model, parameters }) => (parameterSetOf(model) === K7_1.name) === (parameters === undefined)),
  );

function readHead(buffer: Buffer): { head: string; memoryAt: number } {
  const magic = buffer.toString("latin1", 0, MAGIC.length);
  if (buffer.length < HEAD_AT || magic !== MAGIC)
    throw new Error(
      `expected a model state that begins with ${MAGIC}, got ${JSON.stringify(magic)}; rebuild it by calibrate`,
    );
  const memoryAt = HEAD_AT + buffer.readUInt32LE(4);
  return { head: buffer.toString("utf8", HEAD_AT, memoryAt), memoryAt };
}

/** The order of the keys is fixed, so that a model has one text. */
function headOf({ name, thresholds, edge, parameters }: Model): string {
  const own = parameters.name === K7_1.name ? {} : { parameters: valuesOf(parameters) };
  return JSON.stringify({ model: name, thresholds, edge, ...own });
}
