/** Microseconds since 2000, PostgreSQL's epoch, of a UTC time with seven digits. */
function microsOf(time: string): bigint {
  return BigInt(Date.parse(`${time.slice(0, 23)}Z`) - EPOCH_MS) * 1000n + BigInt(time.slice(23, 26));
}

const EPOCH_MS = Date.UTC(2000, 0, 1);
const SIGNATURE = Buffer.from("PGCOPY\n\u{ff}\r\n\0\0\0\0\0\0\0\0\0", "latin1");
const TRAILER = -1;
const NULL = -1;
/** Times that are remembered: the rounds of a response have the same ones. */
const MOST_TIMES = 1_000;

/**
 * Rows in PostgreSQL's binary format of COPY: per row of an import, Node takes 0.8 µs less than with text,
 * and the server 0.6. Call {@link BinaryCopy.row}, then one method per field in the order of the columns.
 */
export class BinaryCopy {
  #bytes: Buffer = Buffer.allocUnsafe(1 << 20);
  /** The same bytes: a DataView writes a bigint in a tenth of a Buffer's time, and allocates nothing. */
  #view = viewOf(this.#bytes);
  #end = SIGNATURE.copy(this.#bytes);
  readonly #micros = new Map<string, bigint>();

  row(fields: number): void {
    this.#reserve(2);
    this.#view.setInt16(this.#end, fields);
    this.#end += 2;
  }

  int2(value: number): void {
    this.#begin(2);
    this.#view.setInt16(this.#end, value);
    this.#end += 2;
  }

  int4(value: number): void {
    this.#begin(4);
    this.#view.setInt32(this.#end, value);
    this.#end += 4;
  }

  int8(value: bigint | number | null): void {
    if (value === null) return this.#null();
    this.#begin(8);
    this.#view.setBigInt64(this.#end, BigInt(value));
    this.#end += 8;
  }

  bool(value: boolean | null): void {
    if (value === null) return this.#null();
    this.#begin(1);
    this.#view.setInt8(this.#end, value ? 1 : 0);
    this.#end += 1;
  }

  /** A UTC time with seven digits, the last of which is 0. */
  time(value: string | null): void {
    if (value === null) return this.#null();
    let micros = this.#micros.get(value);
    if (micros === undefined) {
      if (this.#micros.size === MOST_TIMES) this.#micros.clear();
      this.#micros.set(value, (micros = microsOf(value)));
    }
    this.int8(micros);
  }

  text(value: string): void {
    this.#reserve(4 + 3 * value.length);
    const length = this.#bytes.write(value, this.#end + 4);
    this.#view.setInt32(this.#end, length);
    this.#end += 4 + length;
  }

  /** A bytea, given in hexadecimal digits. */
  hex(value: string | null): void {
    if (value === null) return this.#null();
    this.#begin(value.length / 2);
    this.#end += this.#bytes.write(value, this.#end, "hex");
  }

  /** What was written since the last call. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#end);
    this.#use(Buffer.allocUnsafe(this.#bytes.length), 0);
    return taken;
  }

  /** What was written since {@link BinaryCopy.take}, and the end. */
  finish(): Buffer {
    this.row(TRAILER);
    return this.#bytes.subarray(0, this.#end);
  }

  #use(bytes: Buffer, end: number): void {
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
    this.#end = end;
  }

  #null(): void {
    this.#reserve(4);
    this.#view.setInt32(this.#end, NULL);
    this.#end += 4;
  }

  #begin(length: number): void {
    this.#reserve(4 + length);
    this.#view.setInt32(this.#end, length);
    this.#end += 4;
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#bytes.length) return;
    this.#use(Buffer.concat([this.#bytes], 2 * (this.#end + length)), this.#end);
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
