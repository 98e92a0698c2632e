import type { Costs } from './serving.ts'

/** How times are spread, in milliseconds. */
export interface Spread {
  readonly median: number
  readonly p99: number
  readonly max: number
}

/** Returns how times are spread; all zero for none. */
export function spreadOf(times: readonly number[]): Spread {
  const sorted = Float64Array.from(times).toSorted()
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { median: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 }
}

export function spreadText({ median, p99, max }: Spread): string {
  const [mid, late, most] = [median, p99, max].map((ms) => Math.round(ms).toLocaleString('en'))
  return `median ${mid} ms, 99th percentile ${late} ms, at most ${most} ms`
}

export function costsText({ maxBytes, processorMs }: Costs): string {
  const mebibytes = Math.round(maxBytes / 2 ** 20).toLocaleString('en')
  return `at most ${mebibytes} MiB of memory, ${(processorMs / 1_000).toFixed(1)} s of processor time`
}
