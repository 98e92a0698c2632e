import { option, requireOptions } from '@tallystick/core/internal'
import type { Random } from '@tallystick/core/vocabulary'

const aSeed = option.valueThat('a finite number', Number.isFinite)

/** Random numbers that are the same for the same seed (mulberry32). For tests: predictable by design. */
export function seededRandom(seed: number): Random {
  requireOptions('seededRandom', aSeed, seed, 'the seed')
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
