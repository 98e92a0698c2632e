/**
 * Returns the id of a question. It names the start of the call and its input, so that an answer to an older question
 * has no effect.
 */
export function approvalIdOf(question: {
  readonly toolCallId: string
  readonly attempt: number
  readonly inputDigest: string
}): string {
  return `${question.attempt}.${question.inputDigest}.${question.toolCallId}`
}

/** Returns the question of an approval id; `undefined` if this server made no such id. */
export function questionOf(
  approvalId: string,
): { readonly toolCallId: string; readonly attempt: number; readonly inputDigest: string } | undefined {
  const [, attempt, inputDigest, toolCallId] =
    /^(\d{1,6})\.([^.]{1,200})\.([^.]{1,200})$/.exec(approvalId) ?? []
  if (attempt === undefined || inputDigest === undefined || toolCallId === undefined) return undefined
  return { attempt: Number(attempt), inputDigest, toolCallId }
}
