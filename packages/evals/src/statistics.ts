/** A mean over cases, with the interval that holds the true one in 95 of 100 evaluations. */
export interface Estimate {
  readonly mean: number
  readonly low: number
  readonly high: number
  /** How many cases it is of. */
  readonly cases: number
  /**
   * `wilson`, for what lies between 0 and 1: the interval of a share of passes, which is never too narrow for other scores either.
   * `t`: by Student's distribution.
   */
  readonly method: 'wilson' | 't'
}

/** Adds up the means of cases, one after the other, in constant memory. Repeated runs of a case say nothing of other cases. */
export class Sample {
  readonly #method: Estimate['method']
  #cases = 0
  #mean = 0
  #squares = 0

  constructor(method: Estimate['method']) {
    this.#method = method
  }

  /** `values` are those of the runs of one case. */
  add(values: readonly number[]): void {
    if (values.length === 0) return
    const value = values.reduce((sum, each) => sum + each, 0) / values.length
    this.#cases++
    const change = value - this.#mean
    this.#mean += change / this.#cases
    this.#squares += change * (value - this.#mean)
  }

  /** `undefined` without a case. By `t` a single one has an interval without bounds. */
  estimate(): Estimate | undefined {
    const [cases, mean, method] = [this.#cases, this.#mean, this.#method]
    if (cases === 0) return undefined
    if (method === 'wilson') return { mean, ...findWilsonInterval(mean, cases), cases, method }
    const half = cases > 1 ? findT(cases - 1) * Math.sqrt(this.#squares / (cases - 1) / cases) : Infinity
    return { mean, low: mean - half, high: mean + half, cases, method }
  }
}

/** The quantile of the normal distribution for 95 %. */
const z = 1.959963984540054

function findWilsonInterval(share: number, cases: number): { readonly low: number; readonly high: number } {
  const scale = 1 + (z * z) / cases
  const centre = (share + (z * z) / (2 * cases)) / scale
  const half = (z / scale) * Math.sqrt((share * (1 - share)) / cases + (z * z) / (4 * cases * cases))
  return { low: Math.max(0, centre - half), high: Math.min(1, centre + half) }
}

/** The quantile of Student's t distribution for 95 %: exact for 1 and 2 degrees of freedom, else Fisher's expansion (within 0.3 %). */
export function findT(freedom: number): number {
  if (freedom === 1) return 12.706204736432095
  if (freedom === 2) return 4.302652729911275
  const [z3, z5, z7, z9] = [z ** 3, z ** 5, z ** 7, z ** 9]
  return (
    z +
    (z3 + z) / (4 * freedom) +
    (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom ** 2) +
    (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom ** 3) +
    (79 * z9 + 776 * z7 + 1482 * z5 - 1920 * z3 - 945 * z) / (92160 * freedom ** 4)
  )
}
