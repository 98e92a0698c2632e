import type { Usage } from '@tallystick/core'
import { isCount } from '../json/json-reading.ts'

/** What a wire says, field by field. */
type Counts = { readonly [field in keyof Usage]-?: number | undefined }

/**
 * Counts as a `Usage`, in which the parts of a total are in it. Some services count reasoning beside the output (xAI), and
 * some the cache beside the prompt: their `total` shows it, or a part that is larger than its whole. What was not said
 * stays unknown.
 */
export function coherentUsage(given: Counts, total?: number): Usage {
  const counts = soundCounts(given)
  const { inputTokens, outputTokens, reasoningTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = counts
  const beside = (parts: number, whole: number): boolean => {
    if (parts > whole) return true
    return total !== undefined && parts > 0 && total === (inputTokens ?? 0) + (outputTokens ?? 0) + parts
  }
  const cached = cacheReadTokens + cacheWriteTokens
  const reasonedBeside = outputTokens !== undefined && beside(reasoningTokens, outputTokens)
  const cachedBeside = inputTokens !== undefined && !reasonedBeside && beside(cached, inputTokens)
  const mended: Counts = {
    ...counts,
    ...(reasonedBeside && { outputTokens: outputTokens + reasoningTokens }),
    ...(inputTokens !== undefined &&
      (cachedBeside || cached > inputTokens) && { inputTokens: inputTokens + cached }),
  }
  return soundCounts(mended) as Usage
}

/** What is a count: some services write -1, or no number, for what they do not know. */
function soundCounts(counts: Counts): Counts {
  const sound = Object.entries(counts).filter(([, count]) => count !== undefined && isCount(count))
  return Object.fromEntries(sound) as unknown as Counts
}
