/**
 * Products of very many factors, for evidence: a double, and an exponent of 2^256.
 *
 * Multiplying by a power of two is exact, so the only rounding is that of the plain product, and a replay gives the same
 * bits on every IEEE-754 machine. Logarithms are taken for display only.
 */

/** value · 2^(256·scale) with 1 ≤ value < 2^256: a canonical form, so that equal products have equal fields. */
export type Product = { value: number; scale: number };

const STEP = 2 ** 256;

/** The empty product. */
export function one(): Product {
  return { value: 1, scale: 0 };
}

/**
 * Multiplies a product by a factor, in place.
 *
 * @throws RangeError if the factor is not a finite number above zero
 * @example
 * const product = one();
 * for (let i = 0; i < 400; i++) multiply(product, 0.1);
 * lnOf(product); // => -921.034037
 */
export function multiply(product: Product, factor: number): void {
  if (!(factor > 0 && factor < Infinity))
    throw new RangeError(`expected a factor above zero, got ${factor}; the memory it follows from is damaged`);
  product.value *= factor;
  while (product.value < 1) {
    product.value *= STEP;
    product.scale -= 1;
  }
  while (product.value >= STEP) {
    product.value /= STEP;
    product.scale += 1;
  }
}

/**
 * The natural logarithm, for display.
 *
 * @example
 * lnOf({ value: 20, scale: 0 }); // => 2.995732
 * lnOf({ value: 1, scale: -1 }); // => -177.445678
 */
export function lnOf({ value, scale }: Product): number {
  return Math.log(value) + scale * 256 * Math.LN2;
}

/**
 * Whether one product is at least another.
 *
 * @example
 * isAtLeast({ value: 1, scale: 1 }, { value: 20, scale: 0 }); // => true
 * isAtLeast({ value: 19.5, scale: 0 }, { value: 20, scale: 0 }); // => false
 */
export function isAtLeast(a: Product, b: Product): boolean {
  return a.scale > b.scale || (a.scale === b.scale && a.value >= b.value);
}
