import type { Wake } from '../engine.ts'

/** One wake for two of a run: at the earlier time, with what the first one carries. */
export function mergeWakes(pending: Wake, wake: Wake): Wake {
  const { at: first = 0, ...kept } = pending
  const { at: second = 0, ...added } = wake
  const at = Math.min(first, second)
  return { ...added, ...kept, ...(at > 0 && { at }) }
}
